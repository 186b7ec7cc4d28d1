// D Bernoulli factorizations, W scores at a time: each lane is the factorization of one score.
//
// One rating adds to the row's sums: the gradient of its log-likelihood, error * (1, v), and for the
// bound steps the curvature, w * (1, v)(1, v)^T; the 1 is there only with biases.
#pragma once

#include "kernels.hpp"
#include "lanes.hpp"

namespace BEMF_ISA_NAMESPACE {

constexpr int max_columns = 65;   // 64 factors and a bias
constexpr int stretch = 120;      // ratings between two tidyings of the running sums; 2^-stretch must not underflow
constexpr int look_ahead = 64;    // ratings between asking for a row and using it,
constexpr int bytes_ahead = 16384;  // unless their rows would push each other out of the cache

// The terms of a stretch: their log-likelihood is linear - positive + log product.
template <class T, int W> struct Terms {
    Lanes<T, W> product = same<T, W>(1);
    Lanes<T, W> linear = {};
    Lanes<T, W> positive = {};
};

// The log-likelihood so far. Most of it is the log of a product of numbers in [1/2, 1], kept as mantissa and
// exponent so that one logarithm serves thousands of ratings.
template <class T, int W> struct Likelihood {
    Lanes<T, W> product = same<T, W>(1);
    Mask<T, W> exponent = {};
    double linear[W] = {};

    void tidy(Lanes<T, W> stretch_product, Lanes<T, W> stretch_linear) {
        const Mask<T, W> b = bits<T, W>(product * stretch_product);
        exponent += ((b & Format<T>::exponent_mask) >> Format<T>::mantissa_bits) - Format<T>::exponent_bias;
        product = from_bits<T, W>((b & ~Format<T>::exponent_mask) | Format<T>::one);
        for (int lane = 0; lane < W; ++lane) linear[lane] += stretch_linear[lane];
    }

    double total(int n_scores) const {
        double sum = 0;
        for (int lane = 0; lane < n_scores; ++lane)
            sum += linear[lane] + ::log(double(product[lane])) + 0.69314718055994530942 * double(exponent[lane]);
        return sum;
    }
};

struct Logistic {
    template <class T, int W>
    [[gnu::always_inline]] static Lanes<T, W> error(Lanes<T, W> x, Lanes<T, W> hit, Terms<T, W>* terms,
                                                    Lanes<T, W>* weight) {
        const Lanes<T, W> psi = value<T, W>(x);
        if (terms || weight) {
            const Lanes<T, W> likelier = larger<T, W>(psi, 1 - psi);  // psi(|x|)
            if (terms) {
                terms->product *= likelier;
                terms->linear += hit * x;
                terms->positive += larger<T, W>(x, Lanes<T, W>{});
            }
            if (weight) *weight = bound_weight<T, W>(magnitude<T, W>(x), likelier);
        }
        return hit - psi;
    }

    // (psi(a) - 1/2) / a, by its series where the difference would cancel
    template <class T, int W> static Lanes<T, W> bound_weight(Lanes<T, W> a, Lanes<T, W> psi) {
        constexpr T small = sizeof(T) == 4 ? T(0.25) : T(0.01);
        const Lanes<T, W> s = a * a;
        const Lanes<T, W> series = T(0.25) + s * (T(-1. / 48) + s * (T(1. / 480) + s * T(-17. / 80640)));
        return a > small ? (psi - T(0.5)) / a : series;
    }

    template <class T, int W> static Lanes<T, W> value(Lanes<T, W> x) {
        return 1 / (1 + exp_of_minus<W>(x));
    }
};

// An activation given by one symmetric scalar function: psi(-x) = 1 - psi(x), so that a rating's term is
// log psi(y x) with y = +1 for a hit and -1 for a miss, and its derivative y psi'(y x) / psi(y x).
template <class Scalar> struct Symmetric {
    template <class T, int W>
    static Lanes<T, W> error(Lanes<T, W> x, Lanes<T, W> hit, Terms<T, W>* terms, Lanes<T, W>*) {
        Lanes<T, W> out;
        for (int lane = 0; lane < W; ++lane) {
            const double y = hit[lane] > 0 ? 1 : -1;
            double log_value, slope;
            Scalar::log_value_and_slope(y * double(x[lane]), log_value, slope);
            if (terms) terms->linear[lane] += T(log_value);
            out[lane] = T(y * slope);
        }
        return out;
    }

    template <class T, int W> static Lanes<T, W> value(Lanes<T, W> x) {
        Lanes<T, W> out;
        for (int lane = 0; lane < W; ++lane) out[lane] = T(Scalar::value(double(x[lane])));
        return out;
    }
};

struct ProbitScalar {
    static double value(double x) { return 0.5 * ::erfc(-x * 0.70710678118654752440); }
    static void log_value_and_slope(double x, double& log_value, double& slope) {
        if (x > -8) {
            const double v = value(x);
            log_value = ::log(v);
            slope = 0.39894228040143267794 * ::exp(-0.5 * x * x) / v;
        } else {  // Laplace's continued fraction for the inverse of Mills' ratio
            slope = -x;
            for (int n = 24; n > 0; --n) slope = -x + n / slope;
            log_value = -0.5 * x * x - 0.91893853320467274178 - ::log(slope);
        }
    }
};

struct CauchitScalar {
    static double value(double x) { return ::atan2(1, -x) * 0.31830988618379067154; }
    static void log_value_and_slope(double x, double& log_value, double& slope) {
        const double angle = ::atan2(1, -x);
        log_value = ::log(angle * 0.31830988618379067154);
        slope = 1 / ((1 + x * x) * angle);
    }
};

// K columns known when compiled, 0: as many as the data says. P ratings side by side in one vector, where
// the machine's vectors are wider than the scores.
template <class T, int W, int P, int K, bool biased, class Psi, bool curvature, bool measured> struct Bernoulli {
    using V = Lanes<T, W>;
    static constexpr int room = K ? K : max_columns;
    static constexpr int room_curvature = curvature ? room * (room + 1) / 2 : 1;
    static constexpr int first = biased ? 1 : 0;

    static int columns(const bemf::HalfSweep& s) { return K ? K : s.n_columns; }
    static int curvatures(int k) { return curvature ? k * (k + 1) / 2 : 0; }

    // Running sums over one stretch, which the compiler keeps in registers. float: each stretch is summed
    // apart, so that rounding does not grow with the row; double: one sum in the order of the row.
    template <int Q> struct Running {
        static constexpr bool apart = sizeof(T) == 4;
        Lanes<T, W * Q> gradient[room];
        Lanes<T, W * Q> weights[room_curvature];

        void start(const V* sums, int k) {
            for (int c = 0; c < k; ++c) gradient[c] = begin(sums + c);
            for (int c = 0; c < curvatures(k); ++c) weights[c] = begin(sums + k + c);
        }
        void finish(V* sums, int k) const {
            for (int c = 0; c < k; ++c) end(sums + c, gradient[c]);
            for (int c = 0; c < curvatures(k); ++c) end(sums + k + c, weights[c]);
        }

      private:
        static Lanes<T, W * Q> begin(const V* sum) {
            if constexpr (apart) return Lanes<T, W * Q>{};
            else return *sum;
        }
        static void end(V* sum, Lanes<T, W * Q> value) {
            const V whole = fold<T, W, Q>(value, [](auto a, auto b) { return a + b; });
            *sum = apart ? *sum + whole : whole;
        }
    };

    static void add(const bemf::HalfSweep& s, int64_t row, int64_t begin, int64_t end, V* sums,
                    Likelihood<T, W>& likelihood) {
        for (int64_t from = begin; from < end; from += stretch) {
            const int64_t to = from + stretch < end ? from + stretch : end;
            const int64_t even = to - (to - from) % P;
            if (from < even) add_stretch<P>(s, row, from, even, sums, likelihood);
            if (even < to) add_stretch<1>(s, row, even, to, sums, likelihood);
        }
    }

    template <int Q>
    static void add_stretch(const bemf::HalfSweep& s, int64_t row, int64_t from, int64_t to, V* sums,
                            Likelihood<T, W>& likelihood) {
        using Wide = Lanes<T, W * Q>;
        const int k = columns(s);
        const V* self = static_cast<const V*>(s.self) + row * k;
        const V* others = static_cast<const V*>(s.other);
        const V* one_hot = static_cast<const V*>(s.one_hot);
        Wide own[room], offset = {};
        for (int c = 0; c < k; ++c) own[c] = side_by_side<T, W, Q>([&](int) { return self[c]; });
        if (biased) offset = own[0] + side_by_side<T, W, Q>([&](int) { return *static_cast<const V*>(s.offset); });

        const int row_bytes = k * int(sizeof(V));
        const int ratings_ahead = look_ahead * row_bytes <= bytes_ahead ? look_ahead : bytes_ahead / row_bytes;
        const int32_t* ahead = s.indices + (to + ratings_ahead <= s.n_ratings ? ratings_ahead : 0);
        Running<Q> running;
        running.start(sums, k);
        Terms<T, W * Q> terms;
        for (int64_t j = from; j < to; j += Q) {
            const V* rows[Q];
            for (int q = 0; q < Q; ++q) {
                const char* coming = reinterpret_cast<const char*>(others + int64_t(ahead[j + q]) * k);
                for (int byte = 0; byte < row_bytes; byte += 64) __builtin_prefetch(coming + byte);
                rows[q] = others + int64_t(s.indices[j + q]) * k;
            }
            const Wide hit = side_by_side<T, W, Q>([&](int q) { return one_hot[s.scores[j + q]]; });
            Wide v[room];
            for (int c = 0; c < k; ++c) v[c] = side_by_side<T, W, Q>([&](int q) { return rows[q][c]; });
            Wide x = biased ? offset + v[0] : own[0] * v[0];
            for (int c = 1; c < k; ++c) x += own[c] * v[c];
            Wide weight;
            const Wide error = Psi::template error<T, W * Q>(x, hit, measured ? &terms : nullptr, curvature ? &weight : nullptr);
            if (biased) running.gradient[0] += error;
            for (int c = first; c < k; ++c) running.gradient[c] += error * v[c];
            if (curvature) add_weights<W * Q>(running.weights, weight, v, k);
        }
        running.finish(sums, k);
        if (!measured) return;
        likelihood.tidy(fold<T, W, Q>(terms.product, [](auto a, auto b) { return a * b; }),
                        fold<T, W, Q>(terms.linear - terms.positive, [](auto a, auto b) { return a + b; }));
    }

    template <int L> static void add_weights(Lanes<T, L>* weights, Lanes<T, L> weight, const Lanes<T, L>* v, int k) {
        if (biased) weights[0] += weight;
        int place = first;
        for (int c = first; c < k; ++c) {
            const Lanes<T, L> scaled = weight * v[c];
            if (biased) weights[place++] += scaled;
            for (int b = first; b <= c; ++b) weights[place++] += scaled * v[b];
        }
    }

    static void step(const bemf::HalfSweep& s, int64_t row, const V* sums, double* squares) {
        const int k = columns(s);
        V* self = static_cast<V*>(s.self) + row * k;
        V square = {};
        for (int c = 0; c < k; ++c) square += self[c] * self[c];
        for (int lane = 0; lane < s.n_scores; ++lane) *squares += double(square[lane]);
        if (s.solver == bemf::Solver::gradient) {
            const V rate = same<T, W>(T(s.learning_rate)), penalty = same<T, W>(T(s.regularization));
            for (int c = 0; c < k; ++c) self[c] += rate * (sums[c] - penalty * self[c]);
        }
        if constexpr (curvature) {
            if (s.solver == bemf::Solver::bound) solve_bound(self, sums, same<T, W>(T(s.regularization)), k);
        }
    }

    // (W + eta I) delta = gradient - eta u, by L D L^T in every lane at once
    static void solve_bound(V* self, const V* sums, V penalty, int k) {
        V lower[room_curvature], inverse[room], delta[room];
        for (int c = 0, place = 0; c < k; ++c) {
            for (int b = 0; b <= c; ++b, ++place) {
                V value = sums[k + place];
                if (b == c) value += penalty;
                for (int a = 0; a < b; ++a) value -= lower[at(c, a)] * lower[at(b, a)] * inverse[a];
                lower[place] = value;
            }
            inverse[c] = 1 / lower[at(c, c)];
        }
        for (int c = 0; c < k; ++c) {
            delta[c] = sums[c] - penalty * self[c];
            for (int a = 0; a < c; ++a) delta[c] -= lower[at(c, a)] * delta[a] * inverse[a];
        }
        for (int c = k - 1; c >= 0; --c) {
            for (int a = c + 1; a < k; ++a) delta[c] -= lower[at(a, c)] * delta[a];
            delta[c] *= inverse[c];
        }
        for (int c = 0; c < k; ++c) self[c] += delta[c];
    }
    static int at(int row, int column) { return row * (row + 1) / 2 + column; }

    static void clear(V* sums, int k) {
        for (int c = 0; c < k + curvatures(k); ++c) sums[c] = V{};
    }

    static void rows(const bemf::HalfSweep& s, int64_t first_row, int64_t last_row, void* room_for_sums,
                     bemf::Totals& totals) {
        V* sums = static_cast<V*>(room_for_sums);
        Likelihood<T, W> likelihood;
        for (int64_t row = first_row; row < last_row; ++row) {
            if (s.indptr[row] == s.indptr[row + 1]) continue;  // a row without ratings is left as it is
            if (measured || s.solver != bemf::Solver::look) {
                clear(sums, columns(s));
                add(s, row, s.indptr[row], s.indptr[row + 1], sums, likelihood);
            }
            step(s, row, sums, &totals.squares);
        }
        totals.log_likelihood += likelihood.total(s.n_scores);
    }

    static void sums(const bemf::HalfSweep& s, int64_t row, int64_t begin, int64_t end, void* out,
                     bemf::Totals& totals) {
        V* sums = static_cast<V*>(out);
        Likelihood<T, W> likelihood;
        clear(sums, columns(s));
        add(s, row, begin, end, sums, likelihood);
        totals.log_likelihood += likelihood.total(s.n_scores);
    }

    static void solve(const bemf::HalfSweep& s, int64_t row, const void* sums, bemf::Totals& totals) {
        step(s, row, static_cast<const V*>(sums), &totals.squares);
    }

    static bemf::BernoulliKernels kernels(const bemf::HalfSweep& s) {
        const int k = columns(s);
        return {rows, sums, solve, int64_t(W) * (k + curvatures(k))};
    }
};

template <class T, int W, bool biased, class Psi>
void forecast_pairs(const bemf::Pairs& p, int64_t from, int64_t to) {
    using V = Lanes<T, W>;
    const int k = p.n_columns;
    const V* users = static_cast<const V*>(p.user_factors);
    const V* items = static_cast<const V*>(p.item_factors);
    const V offset = *static_cast<const V*>(p.offset);
    for (int64_t j = from; j < to; ++j) {
        const int64_t ahead = j + look_ahead < to ? j + look_ahead : j;
        __builtin_prefetch(users + int64_t(p.users[ahead]) * k);
        __builtin_prefetch(items + int64_t(p.items[ahead]) * k);
        V value = same<T, W>(T(__builtin_nan("")));
        if (uint32_t(p.users[j]) < p.n_users && uint32_t(p.items[j]) < p.n_items) {
            const V* u = users + int64_t(p.users[j]) * k;
            const V* v = items + int64_t(p.items[j]) * k;
            V x = biased ? offset + u[0] + v[0] : V{};
            for (int c = biased ? 1 : 0; c < k; ++c) x += u[c] * v[c];
            value = Psi::template value<T, W>(x);
        }
        T* out = static_cast<T*>(p.probabilities) + j * p.all_scores;
        for (int lane = 0; lane < p.n_scores; ++lane) out[lane] = value[lane];
    }
}

template <class T, int W, bool biased, class Psi>
void rate_groups(const bemf::Candidates& c, const T* user, int64_t first, int64_t last, T* worths, T* reliabilities) {
    using V = Lanes<T, W>;
    const int k = c.n_columns;
    const V* v = static_cast<const V*>(c.groups) + first * c.n_scores * k;
    const T* offset = static_cast<const T*>(c.offset);
    const T* worth_of = static_cast<const T*>(c.worths);
    for (int64_t group = first; group < last; ++group, worths += W, reliabilities += W) {
        const T* u = user;
        V total = {}, worth = {}, largest = {};
        for (int score = 0; score < c.n_scores; ++score, u += k, v += k) {
            V x = biased ? offset[score] + u[0] + v[0] : V{};
            for (int f = biased ? 1 : 0; f < k; ++f) x += u[f] * v[f];
            const V value = Psi::template value<T, W>(x);
            total += value;
            worth += worth_of[score] * value;
            largest = larger<T, W>(largest, value);
        }
        const V scale = 1 / total;
        worth *= scale;
        largest *= scale;
        memcpy(worths, &worth, sizeof worth);
        memcpy(reliabilities, &largest, sizeof largest);
    }
}

// Makes the probabilities of each pair sum to one; where all are nothing, they are even.
template <class T> void normalize(T* probabilities, int n_scores, int64_t from, int64_t to) {
    for (T* each = probabilities + from * n_scores; each < probabilities + to * n_scores; each += n_scores) {
        T sum = 0;
        for (int score = 0; score < n_scores; ++score) sum += each[score];
        const T scale = sum == 0 ? 0 : 1 / sum, even = sum == 0 ? T(1) / n_scores : 0;
        for (int score = 0; score < n_scores; ++score) each[score] = each[score] * scale + even;
    }
}

}  // namespace BEMF_ISA_NAMESPACE
