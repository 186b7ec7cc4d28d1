// The Python module: arrays in, arrays out. The loops are elsewhere.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cstdint>
#include <cstring>
#include <exception>
#include <optional>
#include <string>
#if defined(__linux__)
#include <sys/mman.h>
#endif

#include "grouping.hpp"
#include "kernels.hpp"
#include "sweeps.hpp"

namespace nb = nanobind;

namespace {

using bemf::BlockSweep;
using bemf::HalfSweep;
using bemf::InstructionSet;
using bemf::Memory;
using bemf::Pairs;
using bemf::Tables;
using bemf::Totals;

template <class T, int dimensions> using Array = nb::ndarray<T, nb::ndim<dimensions>, nb::c_contig, nb::device::cpu>;
using Factors = nb::ndarray<nb::ndim<3>, nb::c_contig, nb::device::cpu>;  // a block's (rows, columns, lanes)
using ReadFactors = nb::ndarray<nb::ro, nb::ndim<3>, nb::c_contig, nb::device::cpu>;
using Vector = nb::ndarray<nb::ro, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <class T> using Blocks = std::vector<T>;

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

std::vector<int> lanes(const InstructionSet& set, int n_scores, bool exact) {
    require(n_scores > 0 && n_scores <= 256, "from 1 to 256 scores");
    std::vector<int> widths;
    for (int left = n_scores; left > 0; left -= widths.back()) widths.push_back(set.lanes(left, exact));
    return widths;
}

// One block of a side: the same rows and columns in all blocks, as many lanes as the instruction set has it.
template <class Block>
void check_blocks(const Blocks<Block>& blocks, const std::vector<int>& widths, size_t n_columns, bool exact) {
    require(blocks.size() == widths.size(), "as many blocks as the scores fill");
    for (size_t b = 0; b < blocks.size(); ++b) {
        const Block& block = blocks[b];
        require(is_exact(block.dtype()) == exact, "all factors must have one dtype");
        require(reinterpret_cast<uintptr_t>(block.data()) % 64 == 0, "factors must be aligned to 64 bytes: see `factors`");
        require(block.shape(2) == size_t(widths[b]), "the lanes do not suit this instruction set");
        require(block.shape(0) == blocks[0].shape(0) && block.shape(1) == n_columns,
                "sides may differ in their rows alone, and blocks in their lanes");
    }
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

template <class T>
std::vector<BlockSweep> block_sweeps(const InstructionSet& set, const HalfSweep& shared, const Blocks<Factors>& self,
                                     const Blocks<ReadFactors>& other, const std::vector<int>& widths, int n_scores,
                                     const T* offsets) {
    std::vector<BlockSweep> blocks;
    int first = 0;
    for (size_t b = 0; b < widths.size(); first += widths[b++]) {
        HalfSweep data = shared;
        data.n_scores = std::min(widths[b], n_scores - first);
        Tables<T> tables(first, data.n_scores, n_scores, widths[b], offsets);
        data.self = self[b].data();
        data.other = other[b].data();
        data.one_hot = tables.one_hot.get();
        data.offset = tables.offset.get();
        const bemf::BernoulliKernels kernels = set.bernoulli(data, widths[b], sizeof(T) == 8);
        blocks.push_back({data, kernels, std::move(tables.one_hot), std::move(tables.offset), nullptr});
    }
    return blocks;
}

// Whether there are biases, that is offsets, one for each score.
bool check_offset(const std::optional<Vector>& offset, int n_scores, bool exact) {
    if (!offset) return false;
    require(is_exact(offset->dtype()) == exact, "all factors must have one dtype");
    require(offset->shape(0) == size_t(n_scores), "there must be as many offsets as scores");
    return true;
}

template <class T> const T* data_of(const std::optional<Vector>& offset) {
    return offset ? static_cast<const T*>(offset->data()) : nullptr;
}

nb::tuple bernoulli_sweep(const std::string& isa, int solver, int activation, bool measured, int n_scores,
                          Array<const int64_t, 1> indptr, Array<const int32_t, 1> indices,
                          Array<const uint8_t, 1> scores, Blocks<Factors> self, Blocks<ReadFactors> other,
                          std::optional<Vector> offset, double learning_rate, double regularization,
                          bemf::Threads& threads, nb::object progress) {
    const InstructionSet& set = instruction_set(isa);
    require(!self.empty(), "there must be at least one block");
    const bool exact = is_exact(self[0].dtype());
    const std::vector<int> widths = lanes(set, n_scores, exact);
    const size_t n_rows = self[0].shape(0), n_columns = self[0].shape(1);
    HalfSweep shared{};
    shared.biased = check_offset(offset, n_scores, exact);
    require(n_columns >= (shared.biased ? 2u : 1u) && n_columns <= 65, "from 1 to 64 factors, and a bias");
    check_blocks(self, widths, n_columns, exact);
    check_blocks(other, widths, n_columns, exact);
    require(indptr.shape(0) == n_rows + 1, "indptr must have one entry more than there are rows");
    require(indptr.data()[0] == 0 && indptr.data()[n_rows] == int64_t(indices.shape(0)) &&
                indices.shape(0) == scores.shape(0),
            "indptr must go from 0 to the number of indices, which is that of scores");
    shared.indptr = indptr.data();
    shared.indices = indices.data();
    shared.scores = scores.data();
    shared.n_ratings = int64_t(indices.shape(0));
    shared.n_columns = int(n_columns);
    shared.measured = measured;
    shared.activation = checked_activation(activation);
    shared.solver = checked_solver(solver, shared.activation);
    shared.learning_rate = learning_rate;
    shared.regularization = regularization;

    const bemf::Plan plan(indptr.data(), n_rows);
    const size_t number = exact ? 8 : 4;
    Tick tick(std::move(progress));
    Totals totals{0, 0};
    bool done;
    {
        const nb::gil_scoped_release no_gil;
        bemf::Sweep sweep(exact ? block_sweeps<double>(set, shared, self, other, widths, n_scores, data_of<double>(offset))
                          : block_sweeps<float>(set, shared, self, other, widths, n_scores, data_of<float>(offset)),
                    plan, threads, number);
        done = sweep.run(shared.n_ratings * int64_t(widths.size()) < bemf::alone_below, tick, totals);
        if (done) sweep.finish(number, totals);
    }
    if (!done) tick.raise();
    return nb::make_tuple(totals.log_likelihood, totals.squares);
}

template <class T>
void forecast_task(const InstructionSet& set, const Blocks<Pairs>& blocks, const std::vector<int>& widths,
                   void* probabilities, int n_scores, int64_t first, int64_t last) {
    for (size_t b = 0; b < blocks.size(); ++b) set.bernoulli_forecast(blocks[b], first, last, widths[b], sizeof(T) == 8);
    set.normalize(probabilities, n_scores, first, last, sizeof(T) == 8);
}

template <class T>
bool forecast(const InstructionSet& set, const Pairs& shared, const Blocks<ReadFactors>& users,
              const Blocks<ReadFactors>& items, const std::vector<int>& widths, const T* offsets, T* probabilities,
              int64_t n_pairs, bemf::Threads& threads, Tick& tick) {
    std::vector<Tables<T>> tables;
    std::vector<Pairs> blocks;
    int first_score = 0;
    for (size_t b = 0; b < widths.size(); first_score += widths[b++]) {
        Pairs block = shared;
        block.n_scores = std::min(widths[b], shared.all_scores - first_score);
        tables.emplace_back(first_score, block.n_scores, shared.all_scores, widths[b], offsets);
        block.user_factors = users[b].data();
        block.item_factors = items[b].data();
        block.offset = tables.back().offset.get();
        block.probabilities = probabilities + first_score;
        blocks.push_back(block);
    }
    const int64_t n_tasks = (n_pairs + bemf::task_ratings - 1) / bemf::task_ratings;
    return bemf::in_parallel(
        n_tasks, threads, n_pairs * shared.all_scores < bemf::alone_below,
        [&](int64_t task, int) {
            const int64_t first = task * bemf::task_ratings;
            const int64_t last = std::min(first + bemf::task_ratings, n_pairs);
            forecast_task<T>(set, blocks, widths, probabilities, shared.all_scores, first, last);
        },
        tick);
}

void bernoulli_forecast(const std::string& isa, int activation, Array<const int32_t, 1> users,
                        Array<const int32_t, 1> items, Blocks<ReadFactors> user_factors,
                        Blocks<ReadFactors> item_factors, std::optional<Vector> offset,
                        nb::ndarray<nb::ndim<2>, nb::c_contig, nb::device::cpu> probabilities, bemf::Threads& threads,
                        nb::object progress) {
    const InstructionSet& set = instruction_set(isa);
    const bool exact = is_exact(probabilities.dtype());
    require(!user_factors.empty() && !item_factors.empty(), "there must be at least one block");
    require(items.shape(0) == users.shape(0) && probabilities.shape(0) == users.shape(0), "as many users as items");
    Pairs shared{};
    shared.users = users.data();
    shared.items = items.data();
    shared.n_users = int64_t(user_factors[0].shape(0));
    shared.n_items = int64_t(item_factors[0].shape(0));
    shared.n_columns = int(user_factors[0].shape(1));
    shared.all_scores = int(probabilities.shape(1));
    shared.biased = check_offset(offset, shared.all_scores, exact);
    shared.activation = checked_activation(activation);
    const std::vector<int> widths = lanes(set, shared.all_scores, exact);
    require(shared.n_columns >= (shared.biased ? 2 : 1), "at least 1 factor, and a bias");
    check_blocks(user_factors, widths, shared.n_columns, exact);
    check_blocks(item_factors, widths, shared.n_columns, exact);

    Tick tick(std::move(progress));
    const int64_t n_pairs = int64_t(users.shape(0));
    bool done;
    {
        const nb::gil_scoped_release no_gil;
        void* out = probabilities.data();
        done = exact ? forecast(set, shared, user_factors, item_factors, widths, data_of<double>(offset),
                                static_cast<double*>(out), n_pairs, threads, tick)
                     : forecast(set, shared, user_factors, item_factors, widths, data_of<float>(offset),
                                static_cast<float*>(out), n_pairs, threads, tick);
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

// Zeros for a block's (rows, columns, lanes), aligned to a cache line, in large pages where there are any.
nb::ndarray<nb::numpy, nb::ndim<3>> factors(size_t rows, size_t columns, size_t lanes, bool exact) {
    const size_t bytes = rows * columns * lanes * (exact ? 8 : 4);
    Memory memory = bemf::aligned(bytes);
#if defined(__linux__)
    const uintptr_t page = 1 << 21, start = reinterpret_cast<uintptr_t>(memory.get());
    const uintptr_t from = (start + page - 1) / page * page, to = (start + bytes) / page * page;
    if (from < to) madvise(reinterpret_cast<void*>(from), to - from, MADV_HUGEPAGE);  // no matter if it cannot
#endif
    std::memset(memory.get(), 0, bytes);
    void* data = memory.get();
    nb::capsule owner(memory.release(), [](void* held) noexcept { bemf::FreeAligned()(held); });
    return nb::ndarray<nb::numpy, nb::ndim<3>>(data, {rows, columns, lanes}, owner, {},
                                               exact ? nb::dtype<double>() : nb::dtype<float>());
}

std::vector<int> blocks(const std::string& isa, int n_scores, bool exact) {
    return lanes(instruction_set(isa), n_scores, exact);
}

}  // namespace

NB_MODULE(_native, m) {
    using namespace nb::literals;
    nb::set_leak_warnings(false);  // a script may end while it holds a model
    m.doc() = "The hot loops. Called by bemf.engines.native and bemf.ratings; not for use elsewhere.";
    nb::class_<bemf::Threads>(m, "Threads", "Threads for one run; they end with this object.")
        .def("__init__",
             [](bemf::Threads* self, int n) {
                 require(n >= 1, "there must be at least 1 thread");
                 new (self) bemf::Threads(n);
             }, "n"_a);
    m.def("instruction_sets", &instruction_sets, "The instruction sets of this machine, best first.");
    m.def("blocks", &blocks, "isa"_a, "n_scores"_a, "exact"_a, "The lanes of each block that scores are spread over.");
    m.def("factors", &factors, "rows"_a, "columns"_a, "lanes"_a, "exact"_a, "A block of aligned zeros.");
    m.def("check_rows", &check_rows, "indptr"_a, "indices"_a, "scores"_a, "n_columns"_a, "n_scores"_a,
          "Refuses rows that would lead a kernel out of its arrays.");
    m.def("group", &group, "keys"_a, "n_keys"_a, "A stable counting sort: (indptr, order).");
    m.def("bernoulli_sweep", &bernoulli_sweep, "isa"_a, "solver"_a, "activation"_a, "measured"_a, "n_scores"_a,
          "indptr"_a, "indices"_a, "scores"_a, "self"_a.noconvert(), "other"_a, "offset"_a.none(), "learning_rate"_a,
          "regularization"_a, "threads"_a, "progress"_a.none(),
          "One half-sweep, in place: (log-likelihood, squares) before it.");
    m.def("bernoulli_forecast", &bernoulli_forecast, "isa"_a, "activation"_a, "users"_a, "items"_a, "user_factors"_a,
          "item_factors"_a, "offset"_a.none(), "probabilities"_a.noconvert(), "threads"_a, "progress"_a.none(),
          "The probabilities of pairs, in place.");
}
