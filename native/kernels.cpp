// The kernels of one instruction set, chosen by the build: BEMF_ISA_NAMESPACE and BEMF_BYTES, the width
// of its vectors.
#include "bernoulli.hpp"

namespace BEMF_ISA_NAMESPACE {
namespace {

using bemf::Activation;
using bemf::BernoulliKernels;
using bemf::HalfSweep;
using bemf::Pairs;
using bemf::Solver;

constexpr int most_lanes(bool exact) { return BEMF_BYTES / (exact ? 8 : 4); }

// The narrowest vector that holds all scores, or the widest there is, several times.
int lanes(int n_scores, bool exact) {
    int width = exact ? 2 : 4;
    while (width < n_scores && width < most_lanes(exact)) width *= 2;
    return width;
}

template <class T, int W, bool biased, bool curvature, int K> BernoulliKernels by_columns(const HalfSweep& s) {
    if constexpr (K > 0) {
        if (s.n_columns != K) return by_columns<T, W, biased, curvature, K - 1>(s);
    }
    constexpr bool exact = sizeof(T) == 8;
    constexpr int side_by_side = exact || K == 0 ? 1 : most_lanes(false) / W;
    return Bernoulli<T, W, side_by_side, K, biased, Logistic, curvature>::kernels(s);
}

template <class T, int W, bool biased> BernoulliKernels by_solver(const HalfSweep& s) {
    if (s.activation == Activation::probit)
        return Bernoulli<T, W, 1, 0, biased, Symmetric<ProbitScalar>, false>::kernels(s);
    if (s.activation == Activation::cauchit)
        return Bernoulli<T, W, 1, 0, biased, Symmetric<CauchitScalar>, false>::kernels(s);
    constexpr bool exact = sizeof(T) == 8;
    if (s.solver == Solver::bound) return by_columns<T, W, biased, true, exact ? 0 : 6>(s);
    return by_columns<T, W, biased, false, exact ? 0 : 9>(s);
}

template <class T, int W> BernoulliKernels by_lanes(const HalfSweep& s, int width) {
    if constexpr (W > 16 / sizeof(T)) {
        if (width < W) return by_lanes<T, W / 2>(s, width);
    }
    return s.biased ? by_solver<T, W, true>(s) : by_solver<T, W, false>(s);
}

BernoulliKernels bernoulli(const HalfSweep& s, int width, bool exact) {
    return exact ? by_lanes<double, most_lanes(true)>(s, width) : by_lanes<float, most_lanes(false)>(s, width);
}

template <class T, int W, class Psi> void forecast_by_bias(const Pairs& p, int64_t from, int64_t to) {
    p.biased ? forecast_pairs<T, W, true, Psi>(p, from, to) : forecast_pairs<T, W, false, Psi>(p, from, to);
}

template <class T, int W> void forecast_by_lanes(const Pairs& p, int64_t from, int64_t to, int width) {
    if constexpr (W > 16 / sizeof(T)) {
        if (width < W) return forecast_by_lanes<T, W / 2>(p, from, to, width);
    }
    switch (p.activation) {
        case Activation::logistic: return forecast_by_bias<T, W, Logistic>(p, from, to);
        case Activation::probit: return forecast_by_bias<T, W, Symmetric<ProbitScalar>>(p, from, to);
        case Activation::cauchit: return forecast_by_bias<T, W, Symmetric<CauchitScalar>>(p, from, to);
    }
}

void forecast(const Pairs& p, int64_t from, int64_t to, int width, bool exact) {
    exact ? forecast_by_lanes<double, most_lanes(true)>(p, from, to, width)
          : forecast_by_lanes<float, most_lanes(false)>(p, from, to, width);
}

}  // namespace

#define BEMF_QUOTED(name) BEMF_QUOTED_AGAIN(name)
#define BEMF_QUOTED_AGAIN(name) #name
}  // namespace BEMF_ISA_NAMESPACE

namespace bemf {
namespace BEMF_ISA_NAMESPACE {
extern const InstructionSet instruction_set = {BEMF_QUOTED(BEMF_ISA_NAMESPACE), ::BEMF_ISA_NAMESPACE::lanes,
                                               ::BEMF_ISA_NAMESPACE::bernoulli, ::BEMF_ISA_NAMESPACE::forecast};
}
}  // namespace bemf
