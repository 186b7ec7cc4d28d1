// The kernels of Bernoulli factorizations, for Python.
#include "python.hpp"
#include "ranking.hpp"
#include "sweeps.hpp"

namespace bemf {
namespace {

Activation checked_activation(int activation) {
    require(activation >= 0 && activation <= int(Activation::cauchit), "no such activation");
    return Activation(activation);
}

Solver checked_solver(int solver, Activation activation) {
    require(solver >= 0 && solver <= int(Solver::bound), "no such solver");
    require(Solver(solver) != Solver::bound || activation == Activation::logistic,
            "only the logistic activation has a bound");
    return Solver(solver);
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
        const BernoulliKernels kernels = set.bernoulli(data, widths[b], sizeof(T) == 8);
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
                          Threads& threads, nb::object progress) {
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
    check_sweep(indptr, indices, scores, n_rows);
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

    const Plan plan(indptr.data(), n_rows);
    const size_t number = exact ? 8 : 4;
    Tick tick(std::move(progress));
    Totals totals{0, 0};
    bool done;
    {
        const nb::gil_scoped_release no_gil;
        Sweep sweep(exact ? block_sweeps<double>(set, shared, self, other, widths, n_scores, data_of<double>(offset))
                          : block_sweeps<float>(set, shared, self, other, widths, n_scores, data_of<float>(offset)),
                    plan, threads, number);
        done = sweep.run(shared.n_ratings * int64_t(widths.size()) < alone_below, tick, totals);
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
              int64_t n_pairs, Threads& threads, Tick& tick) {
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
    const int64_t n_tasks = (n_pairs + task_ratings - 1) / task_ratings;
    return in_parallel(
        n_tasks, threads, n_pairs * shared.all_scores < alone_below,
        [&](int64_t task, int) {
            const int64_t first = task * task_ratings;
            const int64_t last = std::min(first + task_ratings, n_pairs);
            forecast_task<T>(set, blocks, widths, probabilities, shared.all_scores, first, last);
        },
        tick);
}

void bernoulli_forecast(const std::string& isa, int activation, Array<const int32_t, 1> users,
                        Array<const int32_t, 1> items, Blocks<ReadFactors> user_factors,
                        Blocks<ReadFactors> item_factors, std::optional<Vector> offset,
                        nb::ndarray<nb::ndim<2>, nb::c_contig, nb::device::cpu> probabilities, Threads& threads,
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

using Indexes = Array<const int32_t, 1>;

void check_indexes(const Indexes& indexes, size_t n, int32_t least, const char* message) {
    bool inside = true;
    for (size_t j = 0; j < indexes.shape(0); ++j)
        inside &= indexes.data()[j] >= least && indexes.data()[j] < int64_t(n);
    require(inside, message);
}

void check_seen(const Array<const int64_t, 1>& indptr, const Indexes& seen, size_t n_users) {
    require(indptr.shape(0) == n_users + 1 && indptr.data()[0] == 0 &&
                indptr.data()[n_users] == int64_t(seen.shape(0)),
            "seen must have a row for each user");
    bool rising = true;
    for (size_t row = 0; row < n_users; ++row) rising &= indptr.data()[row] <= indptr.data()[row + 1];
    require(rising, "indptr must not fall");
}

template <class T> std::vector<const T*> data_of(const Blocks<ReadFactors>& blocks) {
    std::vector<const T*> data;
    for (const ReadFactors& block : blocks) data.push_back(static_cast<const T*>(block.data()));
    return data;
}

template <class T>
bool rank(const InstructionSet& set, Candidates candidates, const Wish& wish, const Blocks<ReadFactors>& user_factors,
          const Blocks<ReadFactors>& item_factors, const std::vector<int>& widths, const Indexes& users, int32_t* out,
          Threads& threads, Tick& tick) {
    constexpr bool exact = sizeof(T) == 8;
    const int64_t size = set.group_size(exact), n_users = int64_t(users.shape(0));
    const std::vector<Place> where = places(widths, candidates.n_scores);
    const Memory groups =
        grouped_candidates<T>(wish, size, data_of<T>(item_factors), widths, where, candidates.n_columns);
    candidates.groups = groups.get();
    const std::vector<const T*> rows = data_of<T>(user_factors);
    const auto rate = [&](int32_t row, int64_t from, int64_t to, T* worths, T* reliabilities) {
        T user[256 * 65];
        spread(rows, widths, where, candidates.n_columns, row, user, 1);
        set.bernoulli_rate(candidates, user, from, to, worths, reliabilities, exact);
    };
    return in_parallel(
        (n_users + batch_users - 1) / batch_users, threads, n_users * wish.n_candidates < alone_below,
        [&](int64_t task, int) {
            const int64_t first = task * batch_users;
            rank_users<T>(wish, size, users.data(), first, std::min(first + batch_users, n_users), rate, out);
        },
        tick);
}

void bernoulli_rank(const std::string& isa, int activation, Indexes users, Indexes candidates,
                    Blocks<ReadFactors> user_factors, Blocks<ReadFactors> item_factors, std::optional<Vector> offset,
                    Vector worths, std::optional<Array<const int64_t, 1>> seen_indptr, std::optional<Indexes> seen,
                    double min_reliability, double min_worth, Array<int32_t, 2> out, Threads& threads,
                    nb::object progress) {
    const InstructionSet& set = instruction_set(isa);
    require(!user_factors.empty() && !item_factors.empty(), "there must be at least one block");
    const bool exact = is_exact(worths.dtype());
    const int n_scores = int(worths.shape(0));
    const size_t n_users = user_factors[0].shape(0), n_items = item_factors[0].shape(0);
    Candidates shared{};
    shared.n_scores = n_scores;
    shared.n_columns = int(user_factors[0].shape(1));
    shared.biased = check_offset(offset, n_scores, exact);
    shared.offset = offset ? offset->data() : nullptr;
    shared.worths = worths.data();
    shared.activation = checked_activation(activation);
    const std::vector<int> widths = lanes(set, n_scores, exact);
    require(shared.n_columns >= (shared.biased ? 2 : 1) && shared.n_columns <= 65, "from 1 to 64 factors, and a bias");
    check_blocks(user_factors, widths, shared.n_columns, exact);
    check_blocks(item_factors, widths, shared.n_columns, exact);
    check_indexes(users, n_users, -1, "a user is out of range");
    check_indexes(candidates, n_items, 0, "a candidate is out of range");
    require(out.shape(0) == users.shape(0), "a row of places for each user");
    require(out.shape(1) >= 1, "at least one place");
    require(seen_indptr.has_value() == seen.has_value(), "seen comes with its indptr");
    if (seen) check_seen(*seen_indptr, *seen, n_users);

    const Wish wish{candidates.data(), int64_t(candidates.shape(0)), seen ? seen_indptr->data() : nullptr,
                    seen ? seen->data() : nullptr, int64_t(out.shape(1)), min_reliability, min_worth};
    Tick tick(std::move(progress));
    bool done;
    {
        const nb::gil_scoped_release no_gil;
        done = (exact ? rank<double> : rank<float>)(set, shared, wish, user_factors, item_factors, widths, users,
                                                    out.data(), threads, tick);
    }
    if (!done) tick.raise();
}

}  // namespace

void add_bernoulli(nb::module_& m) {
    using namespace nb::literals;
    m.def("bernoulli_sweep", &bernoulli_sweep, "isa"_a, "solver"_a, "activation"_a, "measured"_a, "n_scores"_a,
          "indptr"_a, "indices"_a, "scores"_a, "self"_a.noconvert(), "other"_a, "offset"_a.none(), "learning_rate"_a,
          "regularization"_a, "threads"_a, "progress"_a.none(),
          "One half-sweep, in place: (log-likelihood, squares) before it.");
    m.def("bernoulli_forecast", &bernoulli_forecast, "isa"_a, "activation"_a, "users"_a, "items"_a, "user_factors"_a,
          "item_factors"_a, "offset"_a.none(), "probabilities"_a.noconvert(), "threads"_a, "progress"_a.none(),
          "The probabilities of pairs, in place.");
    m.def("bernoulli_rank", &bernoulli_rank, "isa"_a, "activation"_a, "users"_a, "candidates"_a, "user_factors"_a,
          "item_factors"_a, "offset"_a.none(), "worths"_a, "seen_indptr"_a.none(), "seen"_a.none(),
          "min_reliability"_a, "min_worth"_a, "out"_a.noconvert(), "threads"_a, "progress"_a.none(),
          "The best candidates of each user, in place, best first; -1 where there are no more.");
}

}  // namespace bemf
