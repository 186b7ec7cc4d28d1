"""How the defaults of BeMF were chosen: log-loss on a tenth held out of each training set, never a test part.

BEMF_DATA=… python benchmarks/defaults.py
"""

from __future__ import annotations

import argparse
import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np

import bemf

DATA = ("ml1m", "ml100k", "filmtrust", "anime-sample5k")
MOST_ITERATIONS = {"mm": 60, "gd": 150}
GRID: dict[str, dict[str, tuple[Any, ...]]] = {
    "mm": {"n_factors": (2, 3, 4, 6), "regularization": (3.0, 4.0, 5.0, 6.0, 8.0), "biases": (True, False)},
    "gd": {
        "n_factors": (2, 4),
        "regularization": (0.02, 0.06, 0.16),
        "learning_rate": (0.002, 0.006, 0.02),
        "biases": (True, False),
    },
}


def settings(solver: str) -> Iterator[dict[str, Any]]:
    for values in itertools.product(*GRID[solver].values()):
        yield {"solver": solver, **dict(zip(GRID[solver], values, strict=True))}


def curve(training: bemf.Ratings, setting: dict[str, Any], seed: int) -> list[float]:
    """The validation log-loss after each iteration; infinite once the fit has diverged."""
    most = MOST_ITERATIONS[setting["solver"]]
    model = bemf.BeMF(**setting, n_iterations=most, random_state=seed)
    losses: list[float] = []

    def note(iteration: bemf.Iteration) -> None:
        losses.append(float(iteration.validation or np.nan))

    try:
        model.fit(training, validation=0.1, patience=most, callbacks=[note])
    except bemf.DivergenceError:
        losses += [np.inf] * (most - len(losses))
    return losses


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--solver", choices=list(GRID), nargs="*", default=list(GRID))
    arguments = parser.parse_args()
    training = {name: bemf.datasets.load(name, split="cf4j")[0] for name in DATA}
    rows = []
    for setting in itertools.chain.from_iterable(settings(solver) for solver in arguments.solver):
        curves = np.array(
            [
                np.mean([curve(training[name], setting, seed) for seed in range(arguments.seeds)], axis=0)
                for name in DATA
            ]
        )
        mean = curves.mean(axis=0)
        best = int(np.argmin(mean))
        rows.append((mean[best], best + 1, curves[:, best], setting))
        print(f"{mean[best]:.4f} after {best + 1:3d}:", curves[:, best].round(4), setting, flush=True)
    print("\nBest first")
    for loss, n_iterations, each, setting in sorted(rows, key=lambda row: float(row[0]))[:10]:
        print(f"{loss:.4f} after {n_iterations:3d}:", dict(zip(DATA, each.round(4).tolist(), strict=True)), setting)


if __name__ == "__main__":
    main()
