// The kernels of factorizations whose products make one distribution, for Python.
#include <limits>

#include "python.hpp"
#include "sweeps.hpp"

namespace bemf {
namespace {

template <class Rows>
void check_factors(const Rows& rows, const InstructionSet& set, int n_scores, size_t n_columns, bool exact) {
    require(is_exact(rows.dtype()) == exact, "all factors must have one dtype");
    require(reinterpret_cast<uintptr_t>(rows.data()) % 64 == 0, "factors must be aligned to 64 bytes: see `factors`");
    require(n_scores >= 1 && n_scores <= 256, "from 1 to 256 scores");
    const size_t width = set.point_lanes(n_scores, exact);
    require(rows.shape(2) == (n_scores + width - 1) / width * width, "the scores must be padded to whole vectors");
    require(rows.shape(1) == n_columns && n_columns >= 1 && n_columns <= 65, "from 1 to 65 columns, the same on both sides");
}

nb::tuple simplex_sweep(const std::string& isa, bool dirichlet, bool moves, int n_scores,
                        Array<const int64_t, 1> indptr, Array<const int32_t, 1> indices,
                        Array<const uint8_t, 1> scores, Factors self, ReadFactors other, double learning_rate,
                        double regularization, double log_hit, double log_miss, Threads& threads,
                        nb::object progress) {
    const InstructionSet& set = instruction_set(isa);
    const bool exact = is_exact(self.dtype());
    const size_t n_rows = self.shape(0), n_columns = self.shape(1), padded = self.shape(2);
    check_factors(self, set, n_scores, n_columns, exact);
    check_factors(other, set, n_scores, n_columns, exact);
    check_sweep(indptr, indices, scores, n_rows);
    const SimplexSweep sweep{indptr.data(),  indices.data(),    scores.data(),    self.data(),    other.data(),
                             int(n_columns), n_scores,          int(padded),      dirichlet,      moves,
                             learning_rate,  regularization,    log_hit,          log_miss};
    const Plan plan(indptr.data(), int64_t(n_rows), std::numeric_limits<int64_t>::max());
    std::vector<Totals> parts(plan.tasks.size(), Totals{0, 0});
    const size_t row_bytes = (n_columns * padded * (exact ? 8 : 4) + 63) / 64 * 64;
    const Memory room = aligned(row_bytes * threads.size());
    const int width = set.point_lanes(n_scores, exact);
    Tick tick(std::move(progress));
    bool done;
    {
        const nb::gil_scoped_release no_gil;
        done = in_parallel(
            int64_t(plan.tasks.size()), threads, int64_t(indices.shape(0)) < alone_below / 8,
            [&](int64_t task, int thread) {
                set.simplex_rows(sweep, plan.tasks[task].first, plan.tasks[task].last,
                                 static_cast<char*>(room.get()) + row_bytes * thread, parts[task], width, exact);
            },
            tick);
    }
    if (!done) tick.raise();
    Totals totals{0, 0};
    for (const Totals& part : parts) {
        totals.log_likelihood += part.log_likelihood;
        totals.squares += part.squares;
    }
    return nb::make_tuple(totals.log_likelihood, totals.squares);
}

void simplex_forecast(const std::string& isa, bool dirichlet, Array<const int32_t, 1> users,
                      Array<const int32_t, 1> items, ReadFactors user_factors, ReadFactors item_factors,
                      nb::ndarray<nb::ndim<2>, nb::c_contig, nb::device::cpu> probabilities, Threads& threads,
                      nb::object progress) {
    const InstructionSet& set = instruction_set(isa);
    const bool exact = is_exact(probabilities.dtype());
    const int n_scores = int(probabilities.shape(1));
    const size_t n_columns = user_factors.shape(1);
    check_factors(user_factors, set, n_scores, n_columns, exact);
    check_factors(item_factors, set, n_scores, n_columns, exact);
    require(items.shape(0) == users.shape(0) && probabilities.shape(0) == users.shape(0), "as many users as items");
    const SimplexPairs pairs{users.data(),
                             items.data(),
                             user_factors.data(),
                             item_factors.data(),
                             probabilities.data(),
                             int64_t(user_factors.shape(0)),
                             int64_t(item_factors.shape(0)),
                             int(n_columns),
                             n_scores,
                             int(user_factors.shape(2)),
                             dirichlet};
    const int64_t n = int64_t(users.shape(0)), n_tasks = (n + task_ratings - 1) / task_ratings;
    const int width = set.point_lanes(n_scores, exact);
    Tick tick(std::move(progress));
    bool done;
    {
        const nb::gil_scoped_release no_gil;
        done = in_parallel(
            n_tasks, threads, n * n_scores < alone_below,
            [&](int64_t task, int) {
                const int64_t first = task * task_ratings;
                set.simplex_pairs(pairs, first, std::min(first + task_ratings, n), width, exact);
            },
            tick);
    }
    if (!done) tick.raise();
}

}  // namespace

void add_simplex(nb::module_& m) {
    using namespace nb::literals;
    m.def("simplex_sweep", &simplex_sweep, "isa"_a, "dirichlet"_a, "moves"_a, "n_scores"_a, "indptr"_a, "indices"_a,
          "scores"_a, "self"_a.noconvert(), "other"_a, "learning_rate"_a, "regularization"_a, "log_hit"_a,
          "log_miss"_a, "threads"_a, "progress"_a.none(),
          "One half-sweep, in place: (log-likelihood, squares) before it.");
    m.def("simplex_forecast", &simplex_forecast, "isa"_a, "dirichlet"_a, "users"_a, "items"_a, "user_factors"_a,
          "item_factors"_a, "probabilities"_a.noconvert(), "threads"_a, "progress"_a.none(),
          "The probabilities of pairs, in place.");
}

}  // namespace bemf
