"""How much memory a fit takes: measured in a process of its own, which holds ratings and nothing else.

python benchmarks/memory.py FOLDER N_SCORES N_FACTORS N_ITERATIONS
"""

from __future__ import annotations

import gc
import json
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import bemf
from bemf import _native
from bemf.engines.native import NativeEngine
from bemf.ratings import Ratings
from bemf.rows import Rows
from bemf.vocabulary import Vocabulary

SIDES = ("by_user", "by_item")
ARRAYS = ("indptr", "indices", "score_index")


@dataclass(frozen=True)
class Memory:
    """Bytes."""

    ratings: int
    factors: int  # as `user_factors_` and `item_factors_` show them
    in_lanes: int  # with the lanes that no score uses
    growth: int  # of resident memory from just before the fit to its highest during it

    @property
    def most(self) -> float:
        """What the fit may take: its factors and a tenth of all."""
        return self.factors + 0.1 * (self.ratings + self.factors)


def of_fit(ratings: Ratings, n_factors: int, n_iterations: int = 2) -> Memory | None:
    """None where the system does not say how much memory a process had at most."""
    with tempfile.TemporaryDirectory() as folder:
        for side in SIDES:
            for name in ARRAYS:
                np.save(Path(folder, f"{side}.{name}.npy"), getattr(getattr(ratings, side), name))
        arguments = [folder, str(ratings.n_scores), str(n_factors), str(n_iterations)]
        done = subprocess.run([sys.executable, __file__, *arguments], capture_output=True, check=True, text=True)
    answer = json.loads(done.stdout)
    return answer and Memory(**answer)


def measured(folder: str, n_scores: int, n_factors: int, n_iterations: int) -> dict[str, int] | None:
    by_user, by_item = (Rows(*(np.load(Path(folder, f"{side}.{name}.npy")) for name in ARRAYS)) for side in SIDES)
    users, items = Vocabulary(np.arange(len(by_user)), "user"), Vocabulary(np.arange(len(by_item)), "item")
    ratings = Ratings(users, items, np.arange(1.0, n_scores + 1), by_user, by_item)
    model = bemf.BeMF(solver="gd", n_factors=n_factors, n_iterations=n_iterations, learning_rate=1e-4, random_state=0)
    model.fit(Ratings.from_arrays([1, 2], [1, 2], [1, 2]))  # loads all code
    gc.collect()
    if not forget_the_highest():
        return None
    before = resident("VmRSS")
    model.fit(ratings)
    growth = resident("VmHWM") - before
    lanes = sum(_native.blocks(NativeEngine().isa, n_scores, False))
    n_columns = (len(users) + len(items)) * n_factors
    return {
        "ratings": sum(getattr(rows, name).nbytes for rows in (by_user, by_item) for name in ARRAYS),
        "factors": n_columns * n_scores * 4,
        "in_lanes": n_columns * lanes * 4,
        "growth": growth,
    }


def forget_the_highest() -> bool:
    """Lets the system's mark of the highest resident memory start anew."""
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        return False
    return True


def resident(kind: str) -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    (line,) = (line for line in lines if line.startswith(f"{kind}:"))
    return int(line.split()[1]) * 1024


if __name__ == "__main__":
    print(json.dumps(measured(sys.argv[1], *map(int, sys.argv[2:]))))
