// A stable counting sort: where each key's entries are, in the order they came.
#pragma once

#include <cstdint>

namespace bemf {

// indptr has n_keys + 1 entries, order as many as there are keys.
inline void group(const int32_t* keys, int64_t n, int64_t n_keys, int64_t* indptr, int64_t* order) {
    for (int64_t key = 0; key <= n_keys; ++key) indptr[key] = 0;
    for (int64_t j = 0; j < n; ++j) ++indptr[keys[j] + 1];
    for (int64_t key = 0; key < n_keys; ++key) indptr[key + 1] += indptr[key];
    for (int64_t j = 0; j < n; ++j) order[indptr[keys[j]]++] = j;
    for (int64_t key = n_keys; key > 0; --key) indptr[key] = indptr[key - 1];
    indptr[0] = 0;
}

}  // namespace bemf
