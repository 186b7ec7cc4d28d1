// Rows in parallel: fixed tasks of neighbouring rows, handed out to threads.
//
// What a task holds depends on the data alone and totals are added in the order of the tasks, so results
// are the same for any number of threads.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <vector>

#include "threads.hpp"

namespace bemf {

constexpr int64_t task_ratings = 4096;
constexpr int64_t task_rows = 512;        // of which each may cost a solve
constexpr int64_t piece_ratings = 16384;  // a longer row is cut, so that it keeps no thread waiting
constexpr int64_t alone_below = 32768;    // ratings that are done before a thread would have started
constexpr std::chrono::milliseconds between_ticks{50};

struct Task {
    int64_t first, last;  // rows, or with piece >= 0 the ratings of one row's piece
    int64_t piece;
    int64_t row;
};

struct LongRow {
    int64_t row, first_piece, last_piece;
};

struct Plan {
    std::vector<Task> tasks;
    std::vector<LongRow> long_rows;
    int64_t n_pieces = 0;

    Plan(const int64_t* indptr, int64_t n_rows, int64_t longest = piece_ratings) {
        int64_t first = 0;
        for (int64_t row = 0; row < n_rows; ++row) {
            const int64_t length = indptr[row + 1] - indptr[row];
            if (length > longest) {
                if (first < row) tasks.push_back({first, row, -1, -1});
                cut(indptr, row);
                first = row + 1;
            } else if (indptr[row + 1] - indptr[first] >= task_ratings || row + 1 - first >= task_rows) {
                tasks.push_back({first, row + 1, -1, -1});
                first = row + 1;
            }
        }
        if (first < n_rows) tasks.push_back({first, n_rows, -1, -1});
    }

  private:
    void cut(const int64_t* indptr, int64_t row) {
        const int64_t first_piece = n_pieces;
        for (int64_t begin = indptr[row]; begin < indptr[row + 1]; begin += piece_ratings)
            tasks.push_back({begin, std::min(begin + piece_ratings, indptr[row + 1]), n_pieces++, row});
        long_rows.push_back({row, first_piece, n_pieces});
    }
};

// Runs work(task, thread) for every task, on the calling thread and, unless it is to be alone, on the others.
// Every 50 ms the calling thread calls tick(share of tasks handed out); false stops the work. Returns whether
// all was done.
template <class Work, class Tick> bool in_parallel(int64_t n_tasks, Threads& threads, bool alone, Work work, Tick& tick) {
    using Clock = std::chrono::steady_clock;
    std::atomic<int64_t> next{0};
    std::atomic<bool> stop{false};
    alone = alone || threads.size() == 1 || n_tasks == 1;
    if (!alone)
        threads.start([&](int thread) {
            for (int64_t task; !stop && (task = next++) < n_tasks;) work(task, thread);
        });
    auto ticked = Clock::now();
    for (int64_t task; !stop && (task = next++) < n_tasks;) {
        work(task, 0);
        if (Clock::now() - ticked < between_ticks) continue;
        if (!tick(double(task + 1) / double(n_tasks))) stop = true;
        ticked = Clock::now();
    }
    if (!alone) threads.wait();
    return !stop;
}

}  // namespace bemf
