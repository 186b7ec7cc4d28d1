// The Python module: arrays in, arrays out. The loops are elsewhere.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cstdint>
#include <cstring>
#include <exception>
#include <initializer_list>
#include <memory>
#include <new>
#include <string>

#include "grouping.hpp"
#include "kernels.hpp"
#include "rows.hpp"

namespace nb = nanobind;

namespace {

using bemf::HalfSweep;
using bemf::InstructionSet;
using bemf::Pairs;
using bemf::Totals;

template <class T, int dimensions> using Array = nb::ndarray<T, nb::ndim<dimensions>, nb::c_contig, nb::device::cpu>;
template <int dimensions> using Factors = nb::ndarray<nb::ndim<dimensions>, nb::c_contig, nb::device::cpu>;
template <int dimensions> using ReadFactors = nb::ndarray<nb::ro, nb::ndim<dimensions>, nb::c_contig, nb::device::cpu>;

std::vector<const InstructionSet*> available() {
    std::vector<const InstructionSet*> sets;
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
        __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl"))
        sets.push_back(&bemf::avx512::instruction_set);
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) sets.push_back(&bemf::avx2::instruction_set);
    sets.push_back(&bemf::sse2::instruction_set);
#else
    sets.push_back(&bemf::baseline::instruction_set);
#endif
    return sets;
}

const InstructionSet& instruction_set(const std::string& name) {
    std::string names;
    for (const InstructionSet* set : available()) {
        if (set->name == name) return *set;
        names += std::string(names.empty() ? "" : ", ") + set->name;
    }
    throw nb::value_error(("this machine has no instruction set '" + name + "'; it has " + names).c_str());
}

std::vector<std::string> instruction_sets() {
    std::vector<std::string> names;
    for (const InstructionSet* set : available()) names.push_back(set->name);
    return names;
}

void require(bool holds, const char* message) {
    if (!holds) throw nb::value_error(message);
}

bool is_exact(const nb::dlpack::dtype& type) {
    if (type == nb::dtype<double>()) return true;
    require(type == nb::dtype<float>(), "factors must be float32 or float64");
    return false;
}

bemf::Activation checked_activation(int activation) {
    require(activation >= 0 && activation <= int(bemf::Activation::cauchit), "no such activation");
    return bemf::Activation(activation);
}

bemf::Solver checked_solver(int solver, bemf::Activation activation) {
    require(solver >= 0 && solver <= int(bemf::Solver::bound), "no such solver");
    require(bemf::Solver(solver) != bemf::Solver::bound || activation == bemf::Activation::logistic,
            "only the logistic activation has a bound");
    return bemf::Solver(solver);
}

template <class Block>
void check_block(const Block& block, bool exact, std::initializer_list<size_t> shape, const char* message) {
    require(is_exact(block.dtype()) == exact, "all factors must have one dtype");
    require(reinterpret_cast<uintptr_t>(block.data()) % 64 == 0, "factors must be aligned to 64 bytes: see `factors`");
    size_t axis = 0;
    for (const size_t length : shape) require(block.shape(axis++) == length, message);
}

void check_rows(Array<const int64_t, 1> indptr, Array<const int32_t, 1> indices, Array<const uint8_t, 1> scores,
                int64_t n_columns, int n_scores) {
    require(indptr.shape(0) >= 1, "indptr must not be empty");
    const size_t n_rows = indptr.shape(0) - 1, n = indices.shape(0);
    require(indptr.data()[0] == 0 && indptr.data()[n_rows] == int64_t(n) && scores.shape(0) == n,
            "indptr must go from 0 to the number of indices, which is that of scores");
    bool rising = true, inside = true;
    for (size_t row = 0; row < n_rows; ++row) rising &= indptr.data()[row] <= indptr.data()[row + 1];
    require(rising, "indptr must not fall");
    for (size_t j = 0; j < n; ++j)
        inside &= indices.data()[j] >= 0 && indices.data()[j] < n_columns && scores.data()[j] < n_scores;
    require(inside, "an index or a score is out of range");
}

struct FreeAligned {
    void operator()(void* memory) const { ::operator delete(memory, std::align_val_t(64)); }
};
using Memory = std::unique_ptr<void, FreeAligned>;
Memory aligned(size_t bytes) { return Memory(::operator new(std::max<size_t>(bytes, 64), std::align_val_t(64))); }

// Lets Python see Ctrl-C and tells it how far the work is; keeps what Python raised until the work ends.
class Tick {
  public:
    explicit Tick(nb::object progress) : progress_(std::move(progress)) {}

    bool operator()(double share) {
        const nb::gil_scoped_acquire gil;
        try {
            if (PyErr_CheckSignals() != 0) throw nb::python_error();
            if (!progress_.is_none()) progress_(share);
        } catch (...) {
            raised_ = std::current_exception();
        }
        return !raised_;
    }
    [[noreturn]] void raise() { std::rethrow_exception(raised_); }

  private:
    nb::object progress_;
    std::exception_ptr raised_;
};

// One block's half-sweep cut into tasks, and the room its long rows need.
struct BlockSweep {
    HalfSweep data;
    bemf::BernoulliKernels kernels;
    Memory pieces;
};

class Sweep {
  public:
    Sweep(std::vector<BlockSweep> blocks, const bemf::Plan& plan, bemf::Threads& threads, size_t number)
        : blocks_(std::move(blocks)), plan_(plan), threads_(threads) {
        bytes_ = 0;
        for (BlockSweep& block : blocks_) {
            const size_t bytes = (block.kernels.sums_size * number + 63) / 64 * 64;
            bytes_ = std::max(bytes_, bytes);
            if (plan_.n_pieces) block.pieces = aligned(bytes * plan_.n_pieces);
        }
        room_ = aligned(bytes_ * threads_.size());
        totals_.assign(blocks_.size() * plan_.tasks.size(), Totals{0, 0});
    }

    bool run(bool alone, Tick& tick, Totals& totals) {
        const int64_t n_tasks = plan_.tasks.size();
        const bool all = bemf::in_parallel(
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
            for (const bemf::LongRow& row : plan_.long_rows) {
                number == 8 ? gather<double>(block, row) : gather<float>(block, row);
                block.kernels.solve(block.data, row.row, piece(block, row.first_piece), totals);
            }
    }

  private:
    void work(BlockSweep& block, const bemf::Task& task, Totals& totals, int thread) {
        if (task.piece < 0)
            block.kernels.rows(block.data, task.first, task.last, static_cast<char*>(room_.get()) + bytes_ * thread, totals);
        else
            block.kernels.sums(block.data, task.row, task.first, task.last, piece(block, task.piece), totals);
    }
    void* piece(BlockSweep& block, int64_t number) { return static_cast<char*>(block.pieces.get()) + bytes_ * number; }

    template <class T> void gather(BlockSweep& block, const bemf::LongRow& row) {
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
    const bemf::Plan& plan_;
    bemf::Threads& threads_;
    size_t bytes_;
    Memory room_;
    std::vector<Totals> totals_;
};

// self, other: (blocks, rows, columns, lanes); offset: (blocks, lanes); one_hot: (blocks, scores, lanes)
nb::tuple bernoulli_sweep(const std::string& isa, int solver, int activation, bool biased,
                          Array<const int64_t, 1> indptr, Array<const int32_t, 1> indices,
                          Array<const uint8_t, 1> scores, Factors<4> self, ReadFactors<4> other,
                          ReadFactors<2> offset, ReadFactors<3> one_hot, double learning_rate, double regularization,
                          bemf::Threads& threads, nb::object progress) {
    const InstructionSet& set = instruction_set(isa);
    const bool exact = is_exact(self.dtype());
    const size_t number = exact ? 8 : 4;
    const size_t n_blocks = self.shape(0), n_rows = self.shape(1), n_lanes = self.shape(3);
    const int n_scores = int(one_hot.shape(1));
    const size_t n_columns = self.shape(2);
    require(n_scores > 0 && n_lanes == size_t(set.lanes(n_scores, exact)), "the lanes do not suit this instruction set");
    require(n_columns >= (biased ? 2u : 1u) && n_columns <= 65, "from 1 to 64 factors, and a bias");
    require(n_blocks == (n_scores + n_lanes - 1) / n_lanes, "as many blocks as the scores fill");
    check_block(self, exact, {}, "");
    check_block(other, exact, {n_blocks, other.shape(1), n_columns, n_lanes}, "the sides may differ in their rows alone");
    check_block(offset, exact, {n_blocks, n_lanes}, "offset must be (blocks, lanes)");
    check_block(one_hot, exact, {n_blocks, size_t(n_scores), n_lanes}, "one_hot must be (blocks, scores, lanes)");
    require(indptr.shape(0) == n_rows + 1, "indptr must have one entry more than there are rows");
    require(indptr.data()[0] == 0 && indptr.data()[n_rows] == int64_t(indices.shape(0)) &&
                indices.shape(0) == scores.shape(0),
            "indptr must go from 0 to the number of indices, which is that of scores");

    const bemf::Plan plan(indptr.data(), n_rows);
    std::vector<BlockSweep> blocks;
    for (size_t block = 0; block < n_blocks; ++block) {
        const size_t columns = self.shape(2), other_rows = other.shape(1);
        HalfSweep data{};
        data.indptr = indptr.data();
        data.indices = indices.data();
        data.scores = scores.data();
        data.n_ratings = int64_t(indices.shape(0));
        data.self = static_cast<char*>(self.data()) + block * n_rows * columns * n_lanes * number;
        data.other = static_cast<const char*>(other.data()) + block * other_rows * columns * n_lanes * number;
        data.offset = static_cast<const char*>(offset.data()) + block * n_lanes * number;
        data.one_hot = static_cast<const char*>(one_hot.data()) + block * n_scores * n_lanes * number;
        data.n_columns = int(columns);
        data.n_scores = int(std::min(n_lanes, n_scores - block * n_lanes));
        data.biased = biased;
        data.activation = checked_activation(activation);
        data.solver = checked_solver(solver, data.activation);
        data.learning_rate = learning_rate;
        data.regularization = regularization;
        blocks.push_back({data, set.bernoulli(data, int(n_lanes), exact), nullptr});
    }

    Tick tick(std::move(progress));
    Totals totals{0, 0};
    bool done;
    {
        const nb::gil_scoped_release no_gil;
        Sweep sweep(std::move(blocks), plan, threads, number);
        done = sweep.run(int64_t(indices.shape(0) * n_blocks) < bemf::alone_below, tick, totals);
        if (done) sweep.finish(number, totals);
    }
    if (!done) tick.raise();
    return nb::make_tuple(totals.log_likelihood, totals.squares);
}

void bernoulli_forecast(const std::string& isa, int activation, bool biased, Array<const int32_t, 1> users,
                        Array<const int32_t, 1> items, ReadFactors<4> user_factors, ReadFactors<4> item_factors,
                        ReadFactors<2> offset, Factors<2> probabilities, bemf::Threads& threads, nb::object progress) {
    const InstructionSet& set = instruction_set(isa);
    const bool exact = is_exact(probabilities.dtype());
    const int n_lanes = int(user_factors.shape(3));
    Pairs pairs{};
    pairs.users = users.data();
    pairs.items = items.data();
    pairs.user_factors = user_factors.data();
    pairs.item_factors = item_factors.data();
    pairs.offset = offset.data();
    pairs.probabilities = probabilities.data();
    pairs.n_pairs = int64_t(users.shape(0));
    pairs.n_users = int64_t(user_factors.shape(1));
    pairs.n_items = int64_t(item_factors.shape(1));
    pairs.n_columns = int(user_factors.shape(2));
    pairs.n_scores = int(probabilities.shape(1));
    pairs.biased = biased;
    pairs.activation = checked_activation(activation);
    require(pairs.n_scores > 0 && n_lanes == set.lanes(pairs.n_scores, exact), "the lanes do not suit this instruction set");
    const size_t width = n_lanes, n_blocks = (pairs.n_scores + width - 1) / width, n_columns = pairs.n_columns;
    require(n_columns >= (biased ? 2u : 1u), "at least 1 factor, and a bias");
    check_block(user_factors, exact, {n_blocks, user_factors.shape(1), n_columns, width}, "as many blocks as scores fill");
    check_block(item_factors, exact, {n_blocks, item_factors.shape(1), n_columns, width},
                "the sides may differ in their rows alone");
    check_block(offset, exact, {n_blocks, width}, "offset must be (blocks, lanes)");
    require(items.shape(0) == users.shape(0) && probabilities.shape(0) == users.shape(0), "as many users as items");

    Tick tick(std::move(progress));
    bool done;
    {
        const nb::gil_scoped_release no_gil;
        const int64_t n_tasks = (pairs.n_pairs + bemf::task_ratings - 1) / bemf::task_ratings;
        done = bemf::in_parallel(
            n_tasks, threads, pairs.n_pairs * pairs.n_scores < bemf::alone_below,
            [&](int64_t task, int) {
                const int64_t first = task * bemf::task_ratings;
                set.bernoulli_forecast(pairs, first, std::min(first + bemf::task_ratings, pairs.n_pairs), n_lanes, exact);
            },
            tick);
    }
    if (!done) tick.raise();
}

nb::tuple group(Array<const int32_t, 1> keys, int64_t n_keys) {
    const int64_t n = int64_t(keys.shape(0));
    for (int64_t j = 0; j < n; ++j) require(keys.data()[j] >= 0 && keys.data()[j] < n_keys, "a key is out of range");
    int64_t* indptr = new int64_t[n_keys + 1];
    nb::capsule free_indptr(indptr, [](void* memory) noexcept { delete[] static_cast<int64_t*>(memory); });
    int64_t* order = new int64_t[std::max<int64_t>(n, 1)];
    nb::capsule free_order(order, [](void* memory) noexcept { delete[] static_cast<int64_t*>(memory); });
    {
        const nb::gil_scoped_release no_gil;
        bemf::group(keys.data(), n, n_keys, indptr, order);
    }
    using Out = nb::ndarray<nb::numpy, int64_t, nb::ndim<1>>;
    return nb::make_tuple(Out(indptr, {size_t(n_keys + 1)}, free_indptr), Out(order, {size_t(n)}, free_order));
}

// Zeros aligned to a cache line, (blocks, rows, columns, lanes). NumPy keeps the array as the base of its views.
nb::ndarray<nb::numpy, nb::ndim<4>> factors(size_t blocks, size_t rows, size_t columns, size_t lanes, bool exact) {
    const size_t bytes = blocks * rows * columns * lanes * (exact ? 8 : 4);
    Memory memory = aligned(bytes);
    std::memset(memory.get(), 0, bytes);
    void* data = memory.get();
    nb::capsule owner(memory.release(), [](void* held) noexcept { FreeAligned()(held); });
    return nb::ndarray<nb::numpy, nb::ndim<4>>(data, {blocks, rows, columns, lanes}, owner, {},
                                               exact ? nb::dtype<double>() : nb::dtype<float>());
}

int lanes(const std::string& isa, int n_scores, bool exact) { return instruction_set(isa).lanes(n_scores, exact); }

}  // namespace

NB_MODULE(_native, m) {
    using namespace nb::literals;
    m.doc() = "The hot loops. Called by bemf.engines.native and bemf.ratings; not for use elsewhere.";
    nb::class_<bemf::Threads>(m, "Threads", "Threads for one run; they end with this object.")
        .def("__init__",
             [](bemf::Threads* self, int n) {
                 require(n >= 1, "there must be at least 1 thread");
                 new (self) bemf::Threads(n);
             }, "n"_a);
    m.def("instruction_sets", &instruction_sets, "The instruction sets of this machine, best first.");
    m.def("lanes", &lanes, "isa"_a, "n_scores"_a, "exact"_a, "How many scores one block of factors holds.");
    m.def("factors", &factors, "blocks"_a, "rows"_a, "columns"_a, "lanes"_a, "exact"_a, "Aligned zeros.");
    m.def("check_rows", &check_rows, "indptr"_a, "indices"_a, "scores"_a, "n_columns"_a, "n_scores"_a,
          "Refuses rows that would lead a kernel out of its arrays.");
    m.def("group", &group, "keys"_a, "n_keys"_a, "A stable counting sort: (indptr, order).");
    m.def("bernoulli_sweep", &bernoulli_sweep, "isa"_a, "solver"_a, "activation"_a, "biased"_a, "indptr"_a, "indices"_a,
          "scores"_a, "self"_a.noconvert(), "other"_a, "offset"_a, "one_hot"_a, "learning_rate"_a, "regularization"_a, "threads"_a,
          "progress"_a.none(), "One half-sweep, in place: (log-likelihood, squares) before it.");
    m.def("bernoulli_forecast", &bernoulli_forecast, "isa"_a, "activation"_a, "biased"_a, "users"_a, "items"_a,
          "user_factors"_a, "item_factors"_a, "offset"_a, "probabilities"_a.noconvert(), "threads"_a, "progress"_a.none(),
          "The probabilities of pairs, in place.");
}
