"""Times, the machine they were taken on, and the table they go into."""

from __future__ import annotations

import math
import os
import platform
import statistics
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numba
import numpy as np

import bemf
from bemf import _native

ROUNDS = 5
LEAST = 0.3  # seconds a measurement lasts; shorter work is repeated

Work = Callable[[], object]


def seconds(contenders: Mapping[str, Work], clock: Callable[[], float] = time.process_time) -> dict[str, float]:
    """The median seconds of each, CPU time unless told otherwise. All take turns, so that noise hits all alike."""
    often = {name: math.ceil(LEAST / timed(work, 1, clock)) for name, work in contenders.items()}
    times: dict[str, list[float]] = {name: [] for name in contenders}
    for _ in range(ROUNDS):
        for name, work in contenders.items():
            times[name].append(timed(work, often[name], clock))
    return {name: statistics.median(taken) for name, taken in times.items()}


def timed(work: Work, n: int, clock: Callable[[], float]) -> float:
    start = clock()
    for _ in range(n):
        work()
    return (clock() - start) / n


def n_cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def machine() -> list[str]:
    """What the numbers depend on."""
    versions = f"bemf {bemf.__version__}, NumPy {np.__version__}, numba {numba.__version__}"
    return [
        f"CPU: {cpu_model()}, {n_cores()} cores to run on, load {os.getloadavg()[0]:.1f} before the start",
        f"Instruction sets, best first: {', '.join(_native.instruction_sets())}",
        f"Python {platform.python_version()}, {versions}, {platform.platform()}",
        f"Medians of {ROUNDS} rounds, each of at least {LEAST} s; CPU time unless it says wall time. Float32.",
    ]


def cpu_model() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    parts = (line.partition(":") for line in reversed(lines))  # the first processor's come last, and stay
    facts = {name.strip(): value.strip() for name, _, value in parts}
    family = ", ".join(f"{name} {facts[name]}" for name in ("cpu family", "model") if name in facts)
    return f"{facts.get('model name', platform.machine())} ({family})"


@dataclass(frozen=True)
class Goal:
    words: str
    met: bool

    @classmethod
    def at_most(cls, value: float, most: float, unit: str = "") -> Goal:
        return cls(f"at most {most:g}{unit}", value <= most)

    @classmethod
    def at_least(cls, value: float, least: float, unit: str = "") -> Goal:
        return cls(f"at least {least:g}{unit}", value >= least)


@dataclass
class Report:
    """One table, and a line for each goal in it."""

    lines: list[tuple[str, str, Goal | None]] = field(default_factory=list)

    def add(self, what: str, measured: str, goal: Goal | None = None) -> None:
        self.lines.append((what, measured, goal))

    def table(self) -> str:
        rows = [(what, measured, goal.words if goal else "") for what, measured, goal in self.lines]
        rows = [("what", "measured", "goal"), *rows]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        written = [_row(cells, widths) for cells in rows]
        return "\n".join([written[0], _row(["-" * width for width in widths], widths), *written[1:]])

    def goals(self) -> str:
        judged = [(what, measured, goal) for what, measured, goal in self.lines if goal]
        return "\n".join(
            f"{'met' if goal.met else 'NOT MET':7}  {what}: {measured}, {goal.words}" for what, measured, goal in judged
        )


def _row(cells: Iterable[str], widths: list[int]) -> str:
    return "| " + " | ".join(cell.ljust(width) for cell, width in zip(cells, widths, strict=True)) + " |"
