// The kernels of factorizations that predict points, for Python.
#include <limits>

#include "python.hpp"
#include "rows.hpp"

namespace bemf {
namespace {

template <class Rows> void check_factors(const Rows& rows, const InstructionSet& set, size_t n_columns, bool exact) {
    require(is_exact(rows.dtype()) == exact, "all factors must have one dtype");
    require(reinterpret_cast<uintptr_t>(rows.data()) % 64 == 0, "factors must be aligned to 64 bytes: see `factors`");
    require(rows.shape(1) * rows.shape(2) == n_columns, "the rows of both sides must be equally long");
    require(int(rows.shape(2)) == set.point_lanes(int(n_columns), exact), "the lanes do not suit this instruction set");
    require(rows.shape(1) >= 1 && rows.shape(1) <= 33, "from 1 to 33 vectors a row");
}

nb::tuple point_sweep(const std::string& isa, int solver, bool measured, Array<const int64_t, 1> indptr,
                      Array<const int32_t, 1> indices, Array<const uint8_t, 1> scores, Factors self, ReadFactors other,
                      Vector targets, Vector rates, double regularization, Threads& threads, nb::object progress) {
    const InstructionSet& set = instruction_set(isa);
    const bool exact = is_exact(self.dtype());
    const size_t n_rows = self.shape(0), n_columns = self.shape(1) * self.shape(2);
    check_factors(self, set, n_columns, exact);
    check_factors(other, set, n_columns, exact);
    require(solver >= 0 && solver <= int(PointSolver::multiplication), "no such solver");
    require(is_exact(targets.dtype()) == exact && is_exact(rates.dtype()) == exact, "all must have one dtype");
    require(rates.shape(0) == n_columns, "a rate for each column");
    check_sweep(indptr, indices, scores, n_rows);
    const PointSweep sweep{indptr.data(),  indices.data(), scores.data(), self.data(),
                           other.data(),   targets.data(), rates.data(),  int(n_columns),
                           measured,       PointSolver(solver), regularization};
    // Rows are learned a rating at a time, so that none can be cut.
    const Plan plan(indptr.data(), int64_t(n_rows), std::numeric_limits<int64_t>::max());
    std::vector<Totals> parts(plan.tasks.size(), Totals{0, 0});
    const int width = int(self.shape(2));
    Tick tick(std::move(progress));
    bool done;
    {
        const nb::gil_scoped_release no_gil;
        done = in_parallel(
            int64_t(plan.tasks.size()), threads, int64_t(indices.shape(0)) < alone_below,
            [&](int64_t task, int) {
                set.point_rows(sweep, plan.tasks[task].first, plan.tasks[task].last, parts[task], width, exact);
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

void point_forecast(const std::string& isa, Array<const int32_t, 1> users, Array<const int32_t, 1> items,
                    ReadFactors user_factors, ReadFactors item_factors,
                    nb::ndarray<nb::ndim<1>, nb::c_contig, nb::device::cpu> predictions, Threads& threads,
                    nb::object progress) {
    const InstructionSet& set = instruction_set(isa);
    const bool exact = is_exact(predictions.dtype());
    const size_t n_columns = user_factors.shape(1) * user_factors.shape(2);
    check_factors(user_factors, set, n_columns, exact);
    check_factors(item_factors, set, n_columns, exact);
    require(items.shape(0) == users.shape(0) && predictions.shape(0) == users.shape(0), "as many users as items");
    const PointPairs pairs{users.data(),       items.data(),
                           user_factors.data(), item_factors.data(),
                           predictions.data(),  int64_t(user_factors.shape(0)),
                           int64_t(item_factors.shape(0)), int(n_columns)};
    const int64_t n = int64_t(users.shape(0)), n_tasks = (n + task_ratings - 1) / task_ratings;
    const int width = int(user_factors.shape(2));
    Tick tick(std::move(progress));
    bool done;
    {
        const nb::gil_scoped_release no_gil;
        done = in_parallel(
            n_tasks, threads, n < alone_below,
            [&](int64_t task, int) {
                const int64_t first = task * task_ratings;
                set.point_pairs(pairs, first, std::min(first + task_ratings, n), width, exact);
            },
            tick);
    }
    if (!done) tick.raise();
}

double svdpp_sweep(const std::string& isa, Array<const int64_t, 1> indptr, Array<const int32_t, 1> indices,
                   Array<const uint8_t, 1> scores, Factors users, Factors items, Factors implicit,
                   std::optional<Factors> sums, Vector targets, Vector user_rates, Vector item_rates,
                   Vector implicit_rates, double regularization, bool moves_implicit, Threads& threads,
                   nb::object progress) {
    const InstructionSet& set = instruction_set(isa);
    const bool exact = is_exact(users.dtype());
    const size_t n_users = users.shape(0), n_columns = users.shape(1) * users.shape(2);
    for (const Factors* rows : {&users, &items, &implicit}) check_factors(*rows, set, n_columns, exact);
    require(items.shape(0) == implicit.shape(0), "as many implicit rows as items");
    if (sums) {
        check_factors(*sums, set, n_columns, exact);
        require(sums->shape(0) == n_users, "as many sums as users");
    }
    for (const Vector* rates : {&user_rates, &item_rates, &implicit_rates})
        require(is_exact(rates->dtype()) == exact && rates->shape(0) == n_columns, "a rate for each column");
    require(is_exact(targets.dtype()) == exact, "all must have one dtype");
    check_sweep(indptr, indices, scores, n_users);
    const SvdppSweep sweep{indptr.data(),  indices.data(),    scores.data(),     users.data(),          items.data(),
                           implicit.data(), sums ? sums->data() : nullptr,       targets.data(),        user_rates.data(),
                           item_rates.data(), implicit_rates.data(), int(n_columns), moves_implicit, regularization};
    const Plan plan(indptr.data(), int64_t(n_users), std::numeric_limits<int64_t>::max());
    Totals totals{0, 0};
    const int width = int(users.shape(2));
    Tick tick(std::move(progress));
    bool done;
    {
        const nb::gil_scoped_release no_gil;  // alone: each user moves what the next one reads
        done = in_parallel(
            int64_t(plan.tasks.size()), threads, true,
            [&](int64_t task, int) {
                set.svdpp_users(sweep, plan.tasks[task].first, plan.tasks[task].last, totals, width, exact);
            },
            tick);
    }
    if (!done) tick.raise();
    return totals.log_likelihood;
}

int point_lanes(const std::string& isa, int n_columns, bool exact) {
    require(n_columns >= 1, "at least 1 column");
    return instruction_set(isa).point_lanes(n_columns, exact);
}

}  // namespace

void add_gaussian(nb::module_& m) {
    using namespace nb::literals;
    m.def("point_lanes", &point_lanes, "isa"_a, "n_columns"_a, "exact"_a,
          "The lanes of the vectors that rows of so many columns are padded to.");
    m.def("point_sweep", &point_sweep, "isa"_a, "solver"_a, "measured"_a, "indptr"_a, "indices"_a, "scores"_a,
          "self"_a.noconvert(), "other"_a, "targets"_a, "rates"_a, "regularization"_a, "threads"_a,
          "progress"_a.none(), "One half-sweep, in place: (minus half the squared errors, squares) before it.");
    m.def("svdpp_sweep", &svdpp_sweep, "isa"_a, "indptr"_a, "indices"_a, "scores"_a, "users"_a.noconvert(),
          "items"_a.noconvert(), "implicit"_a.noconvert(), "sums"_a.none(), "targets"_a, "user_rates"_a,
          "item_rates"_a, "implicit_rates"_a, "regularization"_a, "moves_implicit"_a, "threads"_a,
          "progress"_a.none(), "A pass over the users, in place: minus half the squared errors on the way.");
    m.def("point_forecast", &point_forecast, "isa"_a, "users"_a, "items"_a, "user_factors"_a, "item_factors"_a,
          "predictions"_a.noconvert(), "threads"_a, "progress"_a.none(), "The predictions of pairs, in place.");
}

}  // namespace bemf
