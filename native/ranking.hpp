// The best candidates of each user: what a user would think of each goes in, the n of most worth come out.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <utility>
#include <vector>

#include "kernels.hpp"
#include "sweeps.hpp"

namespace bemf {

constexpr int64_t batch_users = 16;   // that share a stretch of candidates while it is in the cache,
constexpr int64_t batch_groups = 64;  // which is so long

struct Wish {
    const int32_t* candidates;  // ascending
    int64_t n_candidates;
    const int64_t* seen_indptr;  // of each user, or null
    const int32_t* seen;         // ascending in each row
    int64_t n;
    double min_reliability;
    double min_worth;
};

// The n best so far, the worst of them on top; of equal worth the earlier item is better.
template <class T> class Best {
  public:
    Best(const Wish& wish, int32_t user) : n_(wish.n), floor_(T(wish.min_worth)) {
        if (!wish.seen_indptr || user < 0) return;
        seen_ = wish.seen + wish.seen_indptr[user];
        seen_end_ = wish.seen + wish.seen_indptr[user + 1];
    }

    void offer(const int32_t* items, int64_t n, const T* worths, const T* reliabilities, T min_reliability) {
        for (int64_t j = 0; j < n; ++j)
            if (worths[j] >= floor_ && reliabilities[j] >= min_reliability) take({worths[j], items[j]});
    }

    void write(int32_t* out) {  // best first, then -1
        std::sort_heap(held_.begin(), held_.end(), better);
        for (int64_t place = 0; place < n_; ++place)
            out[place] = place < int64_t(held_.size()) ? held_[place].second : -1;
    }

  private:
    using Entry = std::pair<T, int32_t>;
    static bool better(const Entry& a, const Entry& b) {
        return a.first > b.first || (a.first == b.first && a.second < b.second);
    }

    void take(const Entry& entry) {
        const bool full = int64_t(held_.size()) == n_;
        if ((full && !better(entry, held_.front())) || std::binary_search(seen_, seen_end_, entry.second)) return;
        if (full) {
            std::pop_heap(held_.begin(), held_.end(), better);
            held_.pop_back();
        }
        held_.push_back(entry);
        std::push_heap(held_.begin(), held_.end(), better);
        if (int64_t(held_.size()) == n_) floor_ = held_.front().first;
    }

    int64_t n_;
    T floor_;  // what is worth less need not be looked at
    const int32_t* seen_ = nullptr;
    const int32_t* seen_end_ = nullptr;
    std::vector<Entry> held_;
};

// Users first … last - 1: the rows of `out` have their n best.
// rate(user, from, to, worths, reliabilities) rates groups from … to - 1 of `group_size` candidates.
template <class T, class Rate>
void rank_users(const Wish& wish, int64_t group_size, const int32_t* users, int64_t first, int64_t last, Rate rate,
                int32_t* out) {
    std::vector<Best<T>> best;
    for (int64_t row = first; row < last; ++row) best.emplace_back(wish, users[row]);
    std::vector<T> worths(batch_groups * group_size), reliabilities(batch_groups * group_size);
    const int64_t n_groups = (wish.n_candidates + group_size - 1) / group_size;
    for (int64_t from = 0; from < n_groups; from += batch_groups) {
        const int64_t to = std::min(from + batch_groups, n_groups);
        const int64_t start = from * group_size, end = std::min(to * group_size, wish.n_candidates);
        for (int64_t row = first; row < last; ++row) {
            if (users[row] < 0) continue;
            rate(users[row], from, to, worths.data(), reliabilities.data());
            best[row - first].offer(wish.candidates + start, end - start, worths.data(), reliabilities.data(),
                                    T(wish.min_reliability));
        }
    }
    for (int64_t row = first; row < last; ++row) best[row - first].write(out + row * wish.n);
}

// Where a score's column is in a row of blocks of lanes.
struct Place {
    size_t block;
    int lane;
};

inline std::vector<Place> places(const std::vector<int>& widths, int n_scores) {
    std::vector<Place> places;
    for (size_t block = 0; block < widths.size(); ++block)
        for (int lane = 0; lane < widths[block] && int(places.size()) < n_scores; ++lane) places.push_back({block, lane});
    return places;
}

// One row's factors as [score][column], a number every `stride`.
template <class T>
void spread(const std::vector<const T*>& blocks, const std::vector<int>& widths, const std::vector<Place>& places,
            int n_columns, int64_t row, T* out, int64_t stride) {
    for (const Place& place : places) {
        const int width = widths[place.block];
        const T* from = blocks[place.block] + row * n_columns * width + place.lane;
        for (int column = 0; column < n_columns; ++column, out += stride) *out = from[column * width];
    }
}

// The candidates' factors in groups, as the kernels want them.
template <class T>
Memory grouped_candidates(const Wish& wish, int64_t group_size, const std::vector<const T*>& blocks,
                          const std::vector<int>& widths, const std::vector<Place>& places, int n_columns) {
    const int64_t n_groups = (wish.n_candidates + group_size - 1) / group_size;
    const int64_t group_length = group_size * int64_t(places.size()) * n_columns;
    Memory memory = aligned(sizeof(T) * n_groups * group_length);
    T* groups = static_cast<T*>(memory.get());
    std::memset(groups, 0, sizeof(T) * n_groups * group_length);
    for (int64_t j = 0; j < wish.n_candidates; ++j)
        spread(blocks, widths, places, n_columns, wish.candidates[j],
               groups + j / group_size * group_length + j % group_size, group_size);
    return memory;
}

}  // namespace bemf
