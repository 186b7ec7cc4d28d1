// A half-sweep over all blocks of scores: what each block is told, the tasks, the order of the sums.
#pragma once

#include <algorithm>
#include <memory>
#include <new>
#include <vector>

#include "kernels.hpp"
#include "rows.hpp"

namespace bemf {

struct FreeAligned {
    void operator()(void* memory) const { ::operator delete(memory, std::align_val_t(64)); }
};
using Memory = std::unique_ptr<void, FreeAligned>;
inline Memory aligned(size_t bytes) { return Memory(::operator new(std::max<size_t>(bytes, 64), std::align_val_t(64))); }

// What a block of scores is told beside factors: which lane is hit, and the offset of each.
template <class T> struct Tables {
    Memory one_hot, offset;

    static constexpr T farthest = -60;  // the offset of lanes that are no score: their probability is nothing

    Tables(int first_score, int n_scores, int all_scores, int width, const T* offsets)
        : one_hot(aligned(sizeof(T) * all_scores * width)), offset(aligned(sizeof(T) * width)) {
        T* hit = static_cast<T*>(one_hot.get());
        std::fill(hit, hit + all_scores * width, T(0));
        T* shift = static_cast<T*>(offset.get());
        std::fill(shift, shift + width, farthest);
        for (int lane = 0; lane < n_scores; ++lane) {
            hit[(first_score + lane) * width + lane] = 1;
            shift[lane] = offsets ? offsets[first_score + lane] : 0;
        }
    }
};

// One block's half-sweep, and the room its long rows need.
struct BlockSweep {
    HalfSweep data;
    BernoulliKernels kernels;
    Memory one_hot, offset, pieces;
};

class Sweep {
  public:
    Sweep(std::vector<BlockSweep> blocks, const Plan& plan, Threads& threads, size_t number)
        : blocks_(std::move(blocks)), plan_(plan), threads_(threads) {
        for (const BlockSweep& block : blocks_)
            bytes_ = std::max(bytes_, (block.kernels.sums_size * number + 63) / 64 * 64);
        for (BlockSweep& block : blocks_) block.pieces = aligned(bytes_ * plan_.n_pieces);
        room_ = aligned(bytes_ * threads_.size());
        totals_.assign(blocks_.size() * plan_.tasks.size(), Totals{0, 0});
    }

    template <class Tick> bool run(bool alone, Tick& tick, Totals& totals) {
        const int64_t n_tasks = plan_.tasks.size();
        const bool all = in_parallel(
            n_tasks * blocks_.size(), threads_, alone,
            [&](int64_t task, int thread) { work(blocks_[task / n_tasks], plan_.tasks[task % n_tasks], totals_[task], thread); },
            tick);
        if (!all) return false;
        for (const Totals& part : totals_) add(totals, part);
        return true;
    }

    // Long rows: their pieces' sums are added in order, then solved.
    void finish(size_t number, Totals& totals) {
        for (BlockSweep& block : blocks_)
            for (const LongRow& row : plan_.long_rows) {
                number == 8 ? gather<double>(block, row) : gather<float>(block, row);
                block.kernels.solve(block.data, row.row, piece(block, row.first_piece), totals);
            }
    }

  private:
    void work(BlockSweep& block, const Task& task, Totals& totals, int thread) {
        if (task.piece < 0)
            block.kernels.rows(block.data, task.first, task.last, static_cast<char*>(room_.get()) + bytes_ * thread, totals);
        else
            block.kernels.sums(block.data, task.row, task.first, task.last, piece(block, task.piece), totals);
    }
    void* piece(BlockSweep& block, int64_t number) { return static_cast<char*>(block.pieces.get()) + bytes_ * number; }

    template <class T> void gather(BlockSweep& block, const LongRow& row) {
        T* sums = static_cast<T*>(piece(block, row.first_piece));
        for (int64_t next = row.first_piece + 1; next < row.last_piece; ++next) {
            const T* more = static_cast<const T*>(piece(block, next));
            for (int64_t n = 0; n < block.kernels.sums_size; ++n) sums[n] += more[n];
        }
    }
    static void add(Totals& totals, const Totals& part) {
        totals.log_likelihood += part.log_likelihood;
        totals.squares += part.squares;
    }

    std::vector<BlockSweep> blocks_;
    const Plan& plan_;
    Threads& threads_;
    size_t bytes_ = 0;  // of one row's sums
    Memory room_;
    std::vector<Totals> totals_;
};

}  // namespace bemf
