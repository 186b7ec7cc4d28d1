"""How fast the kernels are, and what else a fit costs: one table, and for each goal whether it is met.

python benchmarks/kernels.py
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from typing import Any

import numpy as np

import bemf
import memory
import numba_loops
from bemf import _native
from bemf.engines import Run, State, Step
from bemf.engines.native import NativeEngine
from bemf.ratings import Ratings
from bemf.rows import Rows
from data import MOVIELENS, MYANIMELIST, Size, made_up
from measure import ROUNDS, Goal, Report, Work, machine, n_cores, seconds

RATE, ETA = 1e-4, 0.1
ITERATIONS = {MOVIELENS: 100, MYANIMELIST: 20}
NANOSECONDS = {MOVIELENS: {"avx512": 3.5}, MYANIMELIST: {"avx512": 8.0, "avx2": 12.0}}
IN_FIRST_CACHE = 32  # rows
MILLION = 1_000_000
FIRST_USE = "bemf.BeMF().fit(bemf.Ratings.from_arrays([1, 2], [1, 2], [1, 2])).forecast([(1, 2)])"


def main() -> None:
    report = Report()
    print("\n".join([*machine(), "Ours add up the objective, too; numba's loops leave it out."]), flush=True)
    for size in (MOVIELENS, MYANIMELIST):
        ratings = made_up(size)
        fits(report, size, ratings)
        agreement(report, size, ratings)  # compiles numba's loops, too
        half_sweeps(report, size, ratings)
        threads(report, size, ratings)
        if size is MOVIELENS:
            bound_steps(report, ratings)
            forecasts(report, ratings)
        else:
            fit_memory(report, size, ratings)
    imports(report)
    print("", report.table(), "", report.goals(), sep="\n")


# -- fits ------------------------------------------------------------------------------------------


def gradient_model(size: Size, engine: NativeEngine) -> bemf.BeMF:
    n, k = ITERATIONS[size], size.n_factors
    return bemf.BeMF(
        solver="gd", n_factors=k, n_iterations=n, learning_rate=RATE, regularization=ETA, random_state=0, engine=engine
    )


def fitting(model: bemf.BeMF, ratings: Ratings) -> Work:
    return lambda: model.fit(ratings)


def per_rating(taken: float, ratings: Ratings, n_iterations: int = 1) -> float:
    """Nanoseconds a rating and half-sweep."""
    return taken / (n_iterations * 2 * len(ratings)) * 1e9


def fits(report: Report, size: Size, ratings: Ratings) -> None:
    engines = {isa: NativeEngine(n_threads=1, isa=isa) for isa in _native.instruction_sets()}
    taken = seconds({isa: fitting(gradient_model(size, engine), ratings) for isa, engine in engines.items()})
    for isa, each in taken.items():
        value = per_rating(each, ratings, ITERATIONS[size])
        most = NANOSECONDS[size].get(isa)
        what = f"{size.name}: fit by gd, {ITERATIONS[size]} iterations, D={size.n_scores}, k={size.n_factors}, {isa}"
        goal = Goal.at_most(value, most) if most else None
        report.add(what, f"{value:.2f} ns a rating and half-sweep", goal)


def threads(report: Report, size: Size, ratings: Ratings) -> None:
    if n_cores() < 2:
        report.add(f"{size.name}: two threads against one", "not measured: one core")
        return
    models = {str(n): gradient_model(size, NativeEngine(n_threads=n)) for n in (1, 2)}
    taken = seconds({n: fitting(model, ratings) for n, model in models.items()}, clock=time.perf_counter)
    ratio = taken["1"] / taken["2"]
    report.add(
        f"{size.name}: two threads against one, the same fit, wall time",
        f"{ratio:.2f} times",
        Goal.at_least(ratio, 1.8),
    )


def bound_steps(report: Report, ratings: Ratings) -> None:
    n = 20
    models = {
        k: bemf.BeMF(solver="mm", n_factors=k, n_iterations=n, biases=True, random_state=0, n_threads=1) for k in (2, 4)
    }
    taken = seconds({f"{k}": fitting(model, ratings) for k, model in models.items()})
    for k, each in taken.items():
        what = f"{MOVIELENS.name}: fit by mm, {n} iterations, D=5, k={k} and biases"
        report.add(what, f"{per_rating(each, ratings, n):.2f} ns a rating and half-sweep")


# -- half-sweeps -----------------------------------------------------------------------------------


def start(size: Size) -> State:
    rng = np.random.default_rng(0)
    rows = {"U": size.n_users, "V": size.n_items}
    return {name: rng.random((size.n_scores, n, size.n_factors), dtype=np.float32) for name, n in rows.items()}


def iteration(run: Run) -> Work:
    parameters = {"activation": "logistic", "learning_rate": RATE, "regularization": ETA}
    steps = [Step("bernoulli.gradient", side, parameters, measured=side == "user") for side in ("user", "item")]
    return lambda: [run.step(step) for step in steps]


def numba_iteration(loop: numba_loops.Loop, size: Size, ratings: Ratings) -> Work:
    u, v = (loop.pack(block) for block in start(size).values())

    def once() -> None:
        loop.run(ratings.by_user, u, v, RATE, ETA)
        loop.run(ratings.by_item, v, u, RATE, ETA)

    return once


def near(ratings: Ratings) -> Ratings:
    """The same rows, but all that they read of the other side lies in the first-level cache."""
    by_user, by_item = (_near(rows) for rows in (ratings.by_user, ratings.by_item))
    return Ratings(ratings.users, ratings.items, ratings.scores, by_user, by_item)


def _near(rows: Rows) -> Rows:
    return Rows(rows.indptr, rows.indices % IN_FIRST_CACHE, rows.score_index)


def half_sweeps(report: Report, size: Size, ratings: Ratings) -> None:
    engine, loops = NativeEngine(n_threads=1), numba_loops.loops(size.n_scores, size.n_factors)
    contenders = {
        "ours": iteration(engine.place("bernoulli", start(size), ratings)),
        "floor": iteration(engine.place("bernoulli", start(size), near(ratings))),
    }
    contenders |= {loop.name: numba_iteration(loop, size, ratings) for loop in loops}
    taken = {name: per_rating(each, ratings) for name, each in seconds(contenders).items()}
    ours, floor = taken["ours"], taken["floor"]
    best = min(loops, key=lambda loop: taken[loop.name]).name
    ratio, share = taken[best] / ours, floor / ours
    report.add(f"{size.name}: half-sweeps alone, {engine.isa}", f"{ours:.2f} ns a rating and half-sweep")
    report.add(f"{size.name}: the same, other side in the first-level cache", f"{floor:.2f} ns")
    report.add(f"{size.name}: share of that floor", f"{share:.2f}", Goal.at_least(share, 0.6))
    for loop in loops:
        report.add(f"{size.name}: numba, {loop.name}", f"{taken[loop.name]:.2f} ns")
    report.add(f"{size.name}: best numba ({best}) against ours", f"{ratio:.2f} times", Goal.at_least(ratio, 3))


def agreement(report: Report, size: Size, ratings: Ratings) -> None:
    """That all of them do the same work."""
    run = NativeEngine(n_threads=1).place("bernoulli", start(size), ratings)
    once, n = iteration(run), 3
    for _ in range(n):
        once()
    ours = run.fetch()
    others = [
        loop.iterate(n, ratings, start(size), RATE, ETA) for loop in numba_loops.loops(size.n_scores, size.n_factors)
    ]
    largest = max(
        float(np.abs(np.asarray(ours[name]) - np.asarray(other[name])).max()) for other in others for name in ours
    )
    what = f"{size.name}: numba's factors against ours after {n} iterations"
    report.add(what, f"{largest:.1e} apart at most", Goal.at_most(largest, 1e-4))


# -- the rest --------------------------------------------------------------------------------------


def fit_memory(report: Report, size: Size, ratings: Ratings) -> None:
    taken = memory.of_fit(ratings, size.n_factors)
    if taken is None:
        report.add(f"{size.name}: memory of a fit", "not measured: the system does not say")
        return
    held = f"{_mb(taken.ratings)} ratings, {_mb(taken.factors)} factors ({_mb(taken.in_lanes)} in lanes)"
    report.add(f"{size.name}: what a fit holds", held)
    goal = Goal(f"at most factors and 10 % of all: {_mb(taken.most)}", taken.growth <= taken.most)
    share = taken.growth / taken.in_lanes
    measured = f"{_mb(taken.growth)}, {share:.2f} of the factors in lanes"
    report.add(f"{size.name}: growth of memory during a fit, at its highest", measured, goal)


def forecasts(report: Report, ratings: Ratings) -> None:
    engine = NativeEngine(n_threads=1)
    model = gradient_model(MOVIELENS, engine).fit(ratings)
    rng = np.random.default_rng(1)
    pairs = np.stack([rng.integers(0, n, MILLION) for n in (MOVIELENS.n_users, MOVIELENS.n_items)], axis=1)
    users, items = np.ascontiguousarray(pairs.T, dtype=np.int32)
    run = engine.place("bernoulli", model.state_)

    def by_model() -> Any:
        forecast = model.forecast(pairs)
        return forecast.prediction, forecast.reliability

    taken = seconds(
        {
            "engine": lambda: run.forecast("bernoulli.forecast", users, items, {"activation": "logistic"}),
            "model": by_model,
        }
    )
    rates = {name: 1 / each for name, each in taken.items()}  # millions a second
    goal = Goal.at_least(rates["engine"], 10, " million")
    report.add("Forecasts of a million pairs by the engine, D=5, k=2", _millions(rates["engine"]), goal)
    report.add("The same by model.forecast, with prediction and reliability", _millions(rates["model"]))


def imports(report: Report) -> None:
    values = {use: statistics.median(import_seconds(use) for _ in range(ROUNDS)) for use in ("bemf", FIRST_USE)}
    goal = Goal.at_most(values["bemf"], 0.25, " s")
    report.add("import bemf beyond import numpy, CPU time", f"{values['bemf']:.4f} s", goal)
    report.add("The same and a first fit and forecast, of two ratings", f"{values[FIRST_USE]:.4f} s")


def import_seconds(use: str) -> float:
    code = f"import numpy, time; start = time.process_time(); import bemf; {use}; print(time.process_time() - start)"
    return float(subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True).stdout)


def _mb(n_bytes: float) -> str:
    return f"{n_bytes / 1e6:.1f} MB"


def _millions(rate: float) -> str:
    return f"{rate:.1f} million pairs a second and core"


if __name__ == "__main__":
    main()
