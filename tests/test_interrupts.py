"""Ctrl-C: how soon it ends a fit, and what is left then."""

from __future__ import annotations

import json
import os
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

import bemf
from test_robustness import ratings, synthetic

__all__ = ["ratings", "synthetic"]

FITS = """
import json, signal, sys, time
import numpy as np
import bemf
from test_robustness import synthetic

def say(**facts):
    print(json.dumps(facts), flush=True)

def announce(_):
    if not announced:
        announced.append(True)
        say(going=True)

signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job has none
ratings = synthetic(*json.loads(sys.argv[1]))
setting = json.loads(sys.argv[2])
rng = np.random.default_rng(0)
init = [rng.random((5, n, setting["n_factors"])) for n in (len(ratings.users), len(ratings.items))]
for _ in range(3):
    announced = []
    model = bemf.BeMF(solver="mm", biases=False, n_threads=2, **setting)
    reports = {sys.argv[3]: announce if sys.argv[3] == "progress" else [announce]}
    try:
        model.fit(ratings, init=init, **reports)
        say(finished=True)
    except KeyboardInterrupt:
        at = time.monotonic()
        say(
            at=at,
            n_iter=model.n_iter_,
            objective=model.history_["objective"],
            moved=[
                float((block != before.astype(np.float32)).any(axis=(0, 2)).mean())
                for block, before in zip((model.user_factors_, model.item_factors_), init)
            ],
            finite=bool(np.isfinite(model.forecast(ratings).probabilities).all()),
        )
if model.n_iter_:
    model.set_params(warm_start=True, n_iterations=2).fit(ratings)
    say(n_iter=model.n_iter_, objective=model.history_["objective"])
"""


class Interrupted:
    """A process that fits three times, is interrupted each time, and tells of it."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def says(self) -> dict[str, Any]:
        assert self._process.stdout
        return dict(json.loads(self._process.stdout.readline()))

    def interrupt(self, after: float) -> tuple[float, dict[str, Any]]:
        """How long it took until the exception was there, and what the model was then."""
        assert self.says() == {"going": True}
        time.sleep(after)
        before = time.monotonic()
        self._process.send_signal(signal.SIGINT)
        told = self.says()
        return told["at"] - before, told


@contextmanager
def fits_elsewhere(data: tuple[int, int, int], report: str, **setting: Any) -> Iterator[Interrupted]:
    command = [sys.executable, "-c", FITS, json.dumps(data), json.dumps(setting), report]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as process:
        try:
            yield Interrupted(process)
        finally:
            process.kill()


@pytest.mark.slow
def test_a_long_fit_can_be_interrupted_and_goes_on() -> None:
    with fits_elsewhere((50_000, 2_000, 1_500_000), "callbacks", n_factors=8, n_iterations=10_000) as fits:
        times, facts = zip(*(fits.interrupt(after) for after in (0.3, 0.41, 0.53)), strict=True)
        went_on = fits.says()
    assert statistics.median(times) <= 0.5
    for told in facts:
        assert 1 <= told["n_iter"] < 10_000
        assert len(told["objective"]) == told["n_iter"] + 1
        assert np.all(np.diff(told["objective"][:-1]) > 0)
        assert np.isnan(told["objective"][-1])  # what the last iteration reached was not measured
        assert told["moved"] == [1, 1]
        assert told["finite"]
    assert went_on["n_iter"] == 2
    assert len(went_on["objective"]) == facts[-1]["n_iter"] + 2 + 1
    assert went_on["objective"][-3] > facts[-1]["objective"][-2]
    assert went_on["objective"][-1] > went_on["objective"][-3]


@pytest.mark.slow
def test_a_long_half_sweep_can_be_interrupted() -> None:
    with fits_elsewhere((60_000, 500, 1_000_000), "progress", n_factors=64, n_iterations=1) as fits:
        times, facts = zip(*(fits.interrupt(after) for after in (0.2, 0.1, 0.15)), strict=True)
    assert statistics.median(times) <= 0.5
    for told in facts:
        of_users, of_items = told["moved"]
        assert 0 < of_users < 1, "the interrupt did not come in the first half-sweep"
        assert of_items == 0
        assert told["n_iter"] == 0
        assert told["finite"]


def test_an_interrupted_model_is_the_one_of_as_many_iterations(ratings: bemf.Ratings) -> None:
    def interrupt(iteration: bemf.Iteration) -> None:
        if iteration.number == 3:
            raise KeyboardInterrupt

    model = bemf.BeMF(random_state=0)
    with pytest.raises(KeyboardInterrupt):
        model.fit(ratings, callbacks=[interrupt])
    whole = bemf.BeMF(random_state=0, n_iterations=3).fit(ratings)
    assert model.n_iter_ == 3
    assert {name: np.asarray(block).tobytes() for name, block in model.state_.items()} == {
        name: np.asarray(block).tobytes() for name, block in whole.state_.items()
    }
    assert model.history_["objective"][:-1] == whole.history_["objective"][:3]
    assert np.isnan(model.history_["objective"][-1])
    model.set_params(warm_start=True, n_iterations=2).fit(ratings)
    five = bemf.BeMF(random_state=0, n_iterations=5).fit(ratings)
    assert model.history_["objective"] == five.history_["objective"]
