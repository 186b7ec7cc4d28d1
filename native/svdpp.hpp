// SVD++: r = mean + b_u + b_i + q_i . (p_u + z_u), where z_u is the sum of the y_j of all that u has rated, over the
// root of their number. Rows as in gaussian.hpp; the two first columns of y are 0.
//
// A rating's step moves every y_j of its user. All these moves are alike, so they are kept as one shrinking factor
// and one sum, and made when the user's ratings are done: the same numbers at a hundredth of the cost.
#pragma once

#include "gaussian.hpp"

namespace BEMF_ISA_NAMESPACE {

template <class T, int W, int N> struct Svdpp {
    using V = Lanes<T, W>;
    using Row = Gaussian<T, W, N>;
    static constexpr int room = Row::room;

    static void implicit_sum(const bemf::SvdppSweep& s, int64_t user, V* z, int n) {
        for (int c = 0; c < n; ++c) z[c] = V{};
        for (int64_t j = s.indptr[user]; j < s.indptr[user + 1]; ++j)
            for (int c = 0; c < n; ++c) z[c] += Row::load(s.implicit, int64_t(s.indices[j]) * n + c);
        const V scale = same<T, W>(T(1) / T(::sqrt(double(s.indptr[user + 1] - s.indptr[user]))));
        for (int c = 0; c < n; ++c) z[c] *= scale;
    }

    static void users(const bemf::SvdppSweep& s, int64_t first, int64_t last, bemf::Totals& totals) {
        const int n = N ? N : s.n_columns / W;
        V user_rates[room], item_rates[room], implicit_rates[room];
        memcpy(user_rates, s.user_rates, n * sizeof(V));
        memcpy(item_rates, s.item_rates, n * sizeof(V));
        memcpy(implicit_rates, s.implicit_rates, n * sizeof(V));
        for (int64_t user = first; user < last; ++user) {
            if (s.indptr[user] == s.indptr[user + 1]) continue;
            V z[room];
            implicit_sum(s, user, z, n);
            if (s.sums) {
                for (int c = 0; c < n; ++c) static_cast<V*>(s.sums)[user * n + c] = z[c];
                continue;
            }
            descend(s, user, z, user_rates, item_rates, implicit_rates, n, totals);
        }
    }

    static void descend(const bemf::SvdppSweep& s, int64_t user, V* z, const V* user_rates, const V* item_rates,
                        const V* implicit_rates, int n, bemf::Totals& totals) {
        const T* targets = static_cast<const T*>(s.targets);
        const int64_t begin = s.indptr[user], end = s.indptr[user + 1];
        const V penalty = same<T, W>(T(s.regularization));
        V *u = static_cast<V*>(s.users) + user * n, *items = static_cast<V*>(s.items);
        V moved[room] = {}, shrunk[room];
        for (int c = 0; c < n; ++c) shrunk[c] = same<T, W>(1);
        for (int64_t j = begin; j < end; ++j) {
            V* q = items + int64_t(s.indices[j]) * n;
            V w[room], x = {};
            for (int c = 0; c < n; ++c) {
                w[c] = u[c] + z[c];
                x += w[c] * q[c];
            }
            const T error = targets[s.scores[j]] - sum_of<T, W>(x);
            totals.log_likelihood -= 0.5 * double(error) * double(error);
            for (int c = 0; c < n; ++c) {
                const V before = q[c], keep = 1 - implicit_rates[c] * penalty;
                u[c] += user_rates[c] * (error * before - penalty * u[c]);
                q[c] += item_rates[c] * (error * w[c] - penalty * before);
                z[c] = keep * z[c] + implicit_rates[c] * (error * before);
                moved[c] = keep * moved[c] + implicit_rates[c] * (error * before);
                shrunk[c] *= keep;
            }
        }
        const V scale = same<T, W>(T(1) / T(::sqrt(double(end - begin))));
        V* implicit = static_cast<V*>(s.implicit);
        for (int64_t j = begin; s.moves_implicit && j < end; ++j)
            for (int c = 0; c < n; ++c) {
                V& y = implicit[int64_t(s.indices[j]) * n + c];
                y = shrunk[c] * y + scale * moved[c];
            }
    }
};

}  // namespace BEMF_ISA_NAMESPACE
