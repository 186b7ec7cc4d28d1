// Factorizations whose D products make one distribution together: softmax (ResBeMF) and the mean of a Dirichlet
// distribution (DirMF). Rows lie as [column][score], the scores padded to whole vectors; gradient steps of whole rows.
#pragma once

#include "kernels.hpp"
#include "lanes.hpp"

namespace BEMF_ISA_NAMESPACE {

// The derivative of log gamma, and log gamma, of numbers above 0.
inline double digamma(double x) {
    double sum = 0;
    for (; x < 8; x += 1) sum -= 1 / x;
    const double r = 1 / (x * x);
    return sum + ::log(x) - 0.5 / x - r * (1. / 12 - r * (1. / 120 - r * (1. / 252 - r * (1. / 240 - r * (1. / 132)))));
}
inline double log_gamma(double x) {
    int sign;
    return ::lgamma_r(x, &sign);
}

template <class T, int W> struct Simplex {
    using V = Lanes<T, W>;

    static int vectors(const bemf::SimplexSweep& s) { return s.padded_scores / W; }

    // The D products of two rows.
    static void products(const V* u, const V* v, int k, int n, V* x) {
        for (int b = 0; b < n; ++b) x[b] = u[b] * v[b];
        for (int c = 1; c < k; ++c)
            for (int b = 0; b < n; ++b) x[b] += u[c * n + b] * v[c * n + b];
    }

    // In place: products become probabilities; the logarithm of what they are divided by.
    static double softmax(T* x, int n_scores, int padded) {
        T most = x[0];
        for (int s = 1; s < n_scores; ++s) most = x[s] > most ? x[s] : most;
        for (int s = 0; s < padded; s += W) {
            V value;
            memcpy(&value, x + s, sizeof value);
            value = exp_of_minus<W>(same<T, W>(most) - value);
            memcpy(x + s, &value, sizeof value);
        }
        T total = 0;
        for (int s = 0; s < n_scores; ++s) total += x[s];
        for (int s = 0; s < n_scores; ++s) x[s] /= total;
        for (int s = n_scores; s < padded; ++s) x[s] = 0;
        return double(most) + ::log(double(total));
    }

    // The log-likelihood of a rating, and in place of the products its derivatives by them.
    static double softmax_error(const bemf::SimplexSweep& s, T* x, int score) {
        const double of_score = double(x[score]);
        const double log_likelihood = of_score - softmax(x, s.n_scores, s.padded_scores);
        for (int d = 0; d < s.n_scores; ++d) x[d] = -x[d];
        x[score] += 1;
        return log_likelihood;
    }

    // The same for a Dirichlet distribution with the parameters psi(x), of a distribution that gives the score most.
    static double dirichlet_error(const bemf::SimplexSweep& s, T* x, int score) {
        double total = 0, log_likelihood = 0;
        for (int d = 0; d < s.n_scores; ++d) {
            x[d] = T(1 / (1 + ::exp(-double(x[d]))));
            total += double(x[d]);
        }
        const double of_total = digamma(total);
        for (int d = 0; d < s.n_scores; ++d) {
            const double alpha = double(x[d]), log_target = d == score ? s.log_hit : s.log_miss;
            log_likelihood += (alpha - 1) * log_target - log_gamma(alpha);
            x[d] = T(alpha * (1 - alpha) * (of_total - digamma(alpha) + log_target));
        }
        for (int d = s.n_scores; d < s.padded_scores; ++d) x[d] = 0;
        return log_likelihood + log_gamma(total);
    }

    static void rows(const bemf::SimplexSweep& s, int64_t first, int64_t last, void* room, bemf::Totals& totals) {
        const int k = s.n_columns, n = vectors(s);
        V* gradient = static_cast<V*>(room);
        alignas(64) T x[256 + 16];
        for (int64_t row = first; row < last; ++row) {
            if (s.indptr[row] == s.indptr[row + 1]) continue;  // a row without ratings is left as it is
            V* self = static_cast<V*>(s.self) + row * k * n;
            for (int c = 0; c < k * n; ++c) gradient[c] = V{};
            double log_likelihood = 0;
            for (int64_t j = s.indptr[row]; j < s.indptr[row + 1]; ++j) {
                const V* v = static_cast<const V*>(s.other) + int64_t(s.indices[j]) * k * n;
                V* error = reinterpret_cast<V*>(x);
                products(self, v, k, n, error);
                log_likelihood += s.dirichlet ? dirichlet_error(s, x, s.scores[j]) : softmax_error(s, x, s.scores[j]);
                for (int c = 0; c < k; ++c)
                    for (int b = 0; b < n; ++b) gradient[c * n + b] += error[b] * v[c * n + b];
            }
            totals.log_likelihood += log_likelihood;
            totals.squares += step(s, self, gradient, k * n);
        }
    }

    // Moves a row; its squares before.
    static double step(const bemf::SimplexSweep& s, V* self, const V* gradient, int length) {
        const V rate = same<T, W>(T(s.learning_rate)), penalty = same<T, W>(T(s.regularization));
        double squares = 0;
        for (int c = 0; c < length; ++c) {
            const V square = self[c] * self[c];
            for (int lane = 0; lane < W; ++lane) squares += double(square[lane]);
            if (s.moves) self[c] += rate * (gradient[c] - penalty * self[c]);
        }
        return squares;
    }

    static void pairs(const bemf::SimplexPairs& p, int64_t first, int64_t last) {
        const int k = p.n_columns, n = p.padded_scores / W;
        alignas(64) T x[256 + 16];
        for (int64_t j = first; j < last; ++j) {
            T* out = static_cast<T*>(p.probabilities) + j * p.n_scores;
            if (uint32_t(p.users[j]) >= p.n_users || uint32_t(p.items[j]) >= p.n_items) {
                for (int s = 0; s < p.n_scores; ++s) out[s] = T(__builtin_nan(""));
                continue;
            }
            products(static_cast<const V*>(p.user_factors) + int64_t(p.users[j]) * k * n,
                     static_cast<const V*>(p.item_factors) + int64_t(p.items[j]) * k * n, k, n, reinterpret_cast<V*>(x));
            p.dirichlet ? shares(x, p.n_scores) : void(softmax(x, p.n_scores, p.padded_scores));
            for (int s = 0; s < p.n_scores; ++s) out[s] = x[s];
        }
    }

    // The mean of the Dirichlet distribution.
    static void shares(T* x, int n_scores) {
        T total = 0;
        for (int s = 0; s < n_scores; ++s) total += x[s] = T(1 / (1 + ::exp(-double(x[s]))));
        for (int s = 0; s < n_scores; ++s) x[s] /= total;
    }
};

}  // namespace BEMF_ISA_NAMESPACE
