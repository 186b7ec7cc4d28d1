"""Large files are read fast and in little memory."""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest

from bemf import Ratings

MEASURED = """
import re, sys
import numpy, pyarrow.compute, pyarrow.csv
import bemf, bemf.files, bemf.ratings

def peak():  # of this process alone: ru_maxrss begins with that of the process which started it
    return int(re.search(r"VmHWM:\\s+(\\d+) kB", open("/proc/self/status").read())[1]) * 1024

before = peak()
ratings = bemf.Ratings.read(sys.argv[1])
print(len(ratings), len(ratings.users), len(ratings.items), (peak() - before) / len(ratings))
"""


def write_ratings(path: Path, n: int) -> None:
    """Distinct pairs in a scattered order, 200 of each user, written in parts."""
    schema = pa.schema([("userId", pa.int64()), ("movieId", pa.int64()), ("rating", pa.float64())])
    with pyarrow.csv.CSVWriter(path, schema) as writer:
        for start in range(0, n, 1 << 20):
            place = np.arange(start, min(start + (1 << 20), n)) * 7_368_787 % n  # coprime to n: a permutation
            user, nth = np.divmod(place, 200)
            columns = [user + 1, (7 * user + 13 * nth) % 20_000 + 1, (user + 3 * nth) % 10 / 2 + 0.5]
            writer.write_table(pa.table(columns, schema=schema))


@pytest.mark.slow
def test_a_million_ratings_take_less_than_a_second(tmp_path: Path) -> None:
    write_ratings(tmp_path / "ratings.csv", 1_000_000)
    walls, cpus = [], []
    for _ in range(3):
        wall, cpu = time.perf_counter(), time.process_time()
        assert len(Ratings.read(tmp_path / "ratings.csv")) == 1_000_000
        walls.append(time.perf_counter() - wall)
        cpus.append(time.process_time() - cpu)
    assert statistics.median(walls) < 1 or statistics.median(cpus) < 2


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the peak of memory is read from /proc")
def test_twenty_million_ratings_take_little_memory(tmp_path: Path) -> None:
    write_ratings(tmp_path / "ratings.csv", 20_000_000)
    command = [sys.executable, "-c", MEASURED, str(tmp_path / "ratings.csv")]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    n, n_users, n_items, bytes_each = map(float, done.stdout.split())
    print(f"{bytes_each:.1f} bytes a rating")
    assert (n, n_users, n_items) == (20_000_000, 100_000, 20_000)
    assert bytes_each <= 80
