// The kernels of one instruction set, chosen by the build: BEMF_ISA_NAMESPACE and BEMF_BYTES, the width
// of its vectors.
#include "bernoulli.hpp"
#include "gaussian.hpp"
#include "simplex.hpp"
#include "svdpp.hpp"

namespace BEMF_ISA_NAMESPACE {
namespace {

using bemf::Activation;
using bemf::BernoulliKernels;
using bemf::Candidates;
using bemf::HalfSweep;
using bemf::Pairs;
using bemf::Solver;

template <class T> constexpr int most_lanes = BEMF_BYTES / sizeof(T);

// The widest vector that the scores fill, to four bytes of a lane: ten scores take a block of 8 and one of 4.
int lanes(int n_scores, bool exact) {
    int width = exact ? most_lanes<double> : most_lanes<float>;
    const int narrowest = exact ? 2 : 4;
    while (width > narrowest && width > (n_scores + narrowest - 1) / narrowest * narrowest) width /= 2;
    return width;
}

template <class T, int W, bool biased, bool curvature, bool measured, int K>
BernoulliKernels by_columns(const HalfSweep& s) {
    if constexpr (K > 0) {
        if (s.n_columns != K) return by_columns<T, W, biased, curvature, measured, K - 1>(s);
    }
    constexpr int side_by_side = sizeof(T) == 8 || K == 0 ? 1 : most_lanes<float> / W;
    return Bernoulli<T, W, side_by_side, K, biased, Logistic, curvature, measured>::kernels(s);
}

template <class T, int W, bool biased, bool measured> BernoulliKernels by_solver(const HalfSweep& s) {
    if (s.activation == Activation::probit)
        return Bernoulli<T, W, 1, 0, biased, Symmetric<ProbitScalar>, false, measured>::kernels(s);
    if (s.activation == Activation::cauchit)
        return Bernoulli<T, W, 1, 0, biased, Symmetric<CauchitScalar>, false, measured>::kernels(s);
    constexpr bool exact = sizeof(T) == 8;
    if (s.solver == Solver::bound) return by_columns<T, W, biased, true, measured, exact ? 0 : 6>(s);
    return by_columns<T, W, biased, false, measured, exact ? 0 : 9>(s);
}

template <class T, int W, bool biased> BernoulliKernels by_measure(const HalfSweep& s) {
    return s.measured ? by_solver<T, W, biased, true>(s) : by_solver<T, W, biased, false>(s);
}

template <class T, int W> BernoulliKernels by_lanes(const HalfSweep& s, int width) {
    if constexpr (W > 16 / sizeof(T)) {
        if (width < W) return by_lanes<T, W / 2>(s, width);
    }
    return s.biased ? by_measure<T, W, true>(s) : by_measure<T, W, false>(s);
}

BernoulliKernels bernoulli(const HalfSweep& s, int width, bool exact) {
    return exact ? by_lanes<double, most_lanes<double>>(s, width) : by_lanes<float, most_lanes<float>>(s, width);
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
    exact ? forecast_by_lanes<double, most_lanes<double>>(p, from, to, width)
          : forecast_by_lanes<float, most_lanes<float>>(p, from, to, width);
}

template <class T, class Psi>
void rate_by_bias(const Candidates& c, const T* user, int64_t first, int64_t last, T* worths, T* reliabilities) {
    c.biased ? rate_groups<T, most_lanes<T>, true, Psi>(c, user, first, last, worths, reliabilities)
             : rate_groups<T, most_lanes<T>, false, Psi>(c, user, first, last, worths, reliabilities);
}

template <class T>
void rate_as(const Candidates& c, const void* user, int64_t first, int64_t last, void* worths, void* reliabilities) {
    const T* u = static_cast<const T*>(user);
    T *w = static_cast<T*>(worths), *r = static_cast<T*>(reliabilities);
    switch (c.activation) {
        case Activation::logistic: return rate_by_bias<T, Logistic>(c, u, first, last, w, r);
        case Activation::probit: return rate_by_bias<T, Symmetric<ProbitScalar>>(c, u, first, last, w, r);
        case Activation::cauchit: return rate_by_bias<T, Symmetric<CauchitScalar>>(c, u, first, last, w, r);
    }
}

int group_size(bool exact) { return exact ? most_lanes<double> : most_lanes<float>; }

void rate(const Candidates& c, const void* user, int64_t first, int64_t last, void* worths, void* reliabilities,
          bool exact) {
    (exact ? rate_as<double> : rate_as<float>)(c, user, first, last, worths, reliabilities);
}

// The kernels for rows of so many vectors: of one or two, which are common, or as many as it may be.
template <template <class, int, int> class Kernels, class T, int W, class Do> void by_vectors(int n_columns, Do what) {
    if (n_columns == W) what(Kernels<T, W, 1>{});
    else if (n_columns == 2 * W) what(Kernels<T, W, 2>{});
    else what(Kernels<T, W, 0>{});
}

template <template <class, int, int> class Kernels, class T, int W, class Do>
void by_row_lanes(int n_columns, int width, Do what) {
    if constexpr (W > 16 / sizeof(T)) {
        if (width < W) return by_row_lanes<Kernels, T, W / 2>(n_columns, width, what);
    }
    by_vectors<Kernels, T, W>(n_columns, what);
}

template <template <class, int, int> class Kernels, class Do>
void by_row(int n_columns, int width, bool exact, Do what) {
    exact ? by_row_lanes<Kernels, double, most_lanes<double>>(n_columns, width, what)
          : by_row_lanes<Kernels, float, most_lanes<float>>(n_columns, width, what);
}

// The widest vector that one row fills, or the machine's.
int point_lanes(int n_columns, bool exact) {
    int width = exact ? most_lanes<double> : most_lanes<float>;
    while (width > (exact ? 2 : 4) && width / 2 >= n_columns) width /= 2;
    return width;
}

void point_rows(const bemf::PointSweep& s, int64_t first, int64_t last, bemf::Totals& totals, int width, bool exact) {
    by_row<Gaussian>(s.n_columns, width, exact, [&](auto kernel) { kernel.rows(s, first, last, totals); });
}

void point_pairs(const bemf::PointPairs& p, int64_t first, int64_t last, int width, bool exact) {
    by_row<Gaussian>(p.n_columns, width, exact, [&](auto kernel) { kernel.pairs(p, first, last); });
}

void svdpp_users(const bemf::SvdppSweep& s, int64_t first, int64_t last, bemf::Totals& totals, int width, bool exact) {
    by_row<Svdpp>(s.n_columns, width, exact, [&](auto kernel) { kernel.users(s, first, last, totals); });
}

template <class T, int W, class Do> void by_score_lanes(int width, Do what) {
    if constexpr (W > 16 / sizeof(T)) {
        if (width < W) return by_score_lanes<T, W / 2>(width, what);
    }
    what(Simplex<T, W>{});
}

template <class Do> void by_scores(int width, bool exact, Do what) {
    exact ? by_score_lanes<double, most_lanes<double>>(width, what) : by_score_lanes<float, most_lanes<float>>(width, what);
}

void simplex_rows(const bemf::SimplexSweep& s, int64_t first, int64_t last, void* room, bemf::Totals& totals, int width,
                  bool exact) {
    by_scores(width, exact, [&](auto kernel) { kernel.rows(s, first, last, room, totals); });
}

void simplex_pairs(const bemf::SimplexPairs& p, int64_t first, int64_t last, int width, bool exact) {
    by_scores(width, exact, [&](auto kernel) { kernel.pairs(p, first, last); });
}

void normalize_pairs(void* probabilities, int n_scores, int64_t from, int64_t to, bool exact) {
    exact ? normalize(static_cast<double*>(probabilities), n_scores, from, to)
          : normalize(static_cast<float*>(probabilities), n_scores, from, to);
}

}  // namespace

#define BEMF_QUOTED(name) BEMF_QUOTED_AGAIN(name)
#define BEMF_QUOTED_AGAIN(name) #name
}  // namespace BEMF_ISA_NAMESPACE

namespace bemf {
namespace BEMF_ISA_NAMESPACE {
extern const InstructionSet instruction_set = {BEMF_QUOTED(BEMF_ISA_NAMESPACE),
                                               ::BEMF_ISA_NAMESPACE::lanes,
                                               ::BEMF_ISA_NAMESPACE::bernoulli,
                                               ::BEMF_ISA_NAMESPACE::forecast,
                                               ::BEMF_ISA_NAMESPACE::group_size,
                                               ::BEMF_ISA_NAMESPACE::rate,
                                               ::BEMF_ISA_NAMESPACE::point_lanes,
                                               ::BEMF_ISA_NAMESPACE::point_rows,
                                               ::BEMF_ISA_NAMESPACE::point_pairs,
                                               ::BEMF_ISA_NAMESPACE::svdpp_users,
                                               ::BEMF_ISA_NAMESPACE::simplex_rows,
                                               ::BEMF_ISA_NAMESPACE::simplex_pairs,
                                               ::BEMF_ISA_NAMESPACE::normalize_pairs};
}
}  // namespace bemf
