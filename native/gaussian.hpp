// Factorizations with squared errors: one number is predicted, the product of two rows.
//
// Biases and the mean are columns like others: where a user's row holds its bias the item's holds a 1, and the
// other way round; a column of ones has the rate 0. Rows are padded with zeros to whole vectors.
#pragma once

#include "kernels.hpp"
#include "lanes.hpp"

namespace BEMF_ISA_NAMESPACE {

constexpr int most_vectors = 33;  // 64 factors, a bias and a 1, of two lanes each

// The sum of all lanes.
template <class T, int W> inline T sum_of(Lanes<T, W> x) {
    if constexpr (W == 4) return (x[0] + x[1]) + (x[2] + x[3]);
    else if constexpr (W == 2) return x[0] + x[1];
    else
        return sum_of<T, W / 2>(Order<W / 2>::low(x) + Order<W / 2>::high(x));
}

// N vectors a row, known when compiled; 0: as many as the data says.
template <class T, int W, int N> struct Gaussian {
    using V = Lanes<T, W>;
    static constexpr int room = N ? N : most_vectors;

    static int vectors(const bemf::PointSweep& s) { return N ? N : s.n_columns / W; }

    static V load(const void* rows, int64_t place) { return static_cast<const V*>(rows)[place]; }

    static T product(const V* u, const void* others, int64_t from, int n) {
        V x = u[0] * load(others, from);
        for (int c = 1; c < n; ++c) x += u[c] * load(others, from + c);
        return sum_of<T, W>(x);
    }

    static double squared_errors(const bemf::PointSweep& s, int64_t row, const V* u, int n) {
        const T* targets = static_cast<const T*>(s.targets);
        double sum = 0;
        for (int64_t j = s.indptr[row]; j < s.indptr[row + 1]; ++j) {
            const T error = targets[s.scores[j]] - product(u, s.other, int64_t(s.indices[j]) * n, n);
            sum += double(error) * double(error);
        }
        return sum;
    }

    // One step for each rating, one after the other.
    static void descend(const bemf::PointSweep& s, int64_t row, V* u, const V* rates, int n) {
        const T* targets = static_cast<const T*>(s.targets);
        const V penalty = same<T, W>(T(s.regularization));
        for (int64_t j = s.indptr[row]; j < s.indptr[row + 1]; ++j) {
            const int64_t from = int64_t(s.indices[j]) * n;
            const T error = targets[s.scores[j]] - product(u, s.other, from, n);
            for (int c = 0; c < n; ++c) u[c] += rates[c] * (error * load(s.other, from + c) - penalty * u[c]);
        }
    }

    // Lee and Seung's multiplication, which never raises the squared error; all predictions are of the old row.
    static void multiply(const bemf::PointSweep& s, int64_t row, V* u, int n) {
        const T* targets = static_cast<const T*>(s.targets);
        V above[room] = {}, below[room] = {};
        for (int64_t j = s.indptr[row]; j < s.indptr[row + 1]; ++j) {
            const int64_t from = int64_t(s.indices[j]) * n;
            const T target = targets[s.scores[j]], predicted = product(u, s.other, from, n);
            for (int c = 0; c < n; ++c) {
                const V v = load(s.other, from + c);
                above[c] += target * v;
                below[c] += predicted * v;
            }
        }
        for (int c = 0; c < n; ++c) u[c] *= above[c] / (below[c] + T(1e-10));
    }

    static void rows(const bemf::PointSweep& s, int64_t first, int64_t last, bemf::Totals& totals) {
        const int n = vectors(s);
        V rates[room];
        memcpy(rates, s.rates, n * sizeof(V));
        for (int64_t row = first; row < last; ++row) {
            if (s.indptr[row] == s.indptr[row + 1]) continue;  // a row without ratings is left as it is
            V u[room];
            V* self = static_cast<V*>(s.self) + row * n;
            for (int c = 0; c < n; ++c) u[c] = self[c];
            if (s.measured) totals.log_likelihood -= 0.5 * squared_errors(s, row, u, n);
            totals.squares += squares(u, rates, n);
            if (s.solver == bemf::PointSolver::look) continue;
            s.solver == bemf::PointSolver::descent ? descend(s, row, u, rates, n) : multiply(s, row, u, n);
            for (int c = 0; c < n; ++c) self[c] = u[c];
        }
    }

    // Of the columns that change.
    static double squares(const V* u, const V* rates, int n) {
        double sum = 0;
        for (int c = 0; c < n; ++c) sum += double(sum_of<T, W>(rates[c] != 0 ? u[c] * u[c] : V{}));
        return sum;
    }

    static void pairs(const bemf::PointPairs& p, int64_t first, int64_t last) {
        const int n = N ? N : p.n_columns / W;
        for (int64_t j = first; j < last; ++j) {
            T value = T(__builtin_nan(""));
            if (uint32_t(p.users[j]) < p.n_users && uint32_t(p.items[j]) < p.n_items)
                value = product(static_cast<const V*>(p.user_factors) + int64_t(p.users[j]) * n, p.item_factors,
                                int64_t(p.items[j]) * n, n);
            static_cast<T*>(p.predictions)[j] = value;
        }
    }
};

}  // namespace BEMF_ISA_NAMESPACE
