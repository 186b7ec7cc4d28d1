"""The command as a process: on a terminal, interrupted, killed, and how soon it is there."""

from __future__ import annotations

import contextlib
import os
import pty
import random
import re
import signal
import statistics
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import bemf as library
from command_line import (
    Fitted,
    command,
    contents,
    environment,
    fails,
    fitted,
    name,
    one_line,
    plain,
    works,
    write_ratings,
)
from test_public import HEAVY, cpu_time, fresh

__all__ = ["plain"]

LONG = ("-p", "n_iterations=100000000")  # hours

# As every process of a terminal does; a shell's background job does not, nor do those that it starts.
HEED_INTERRUPTS = "import signal; signal.signal(signal.SIGINT, signal.SIG_DFL)"

# -- how soon it is there ----------------------------------------------------------------------------

SHOWS = "import contextlib, io, json, sys, bemf.cli as cli; sink = contextlib.redirect_stdout(io.StringIO())"


@pytest.mark.parametrize("arguments", [["--help"], ["--version"], ["fit", "--help"], ["recommend", "--help"]])
def test_help_loads_nothing_heavy(arguments: list[str]) -> None:
    shown = "with sink: status = cli._run({arguments})\nprint(json.dumps([status, sorted(sys.modules)]))"
    status, loaded = fresh(f"{SHOWS}\n{shown.format(arguments=arguments)}")
    assert status == 0
    there = {each.partition(".")[0] for each in loaded}
    assert there & {*HEAVY, "numpy", "importlib_metadata"} == {"click"}


@pytest.mark.slow
def test_help_takes_no_time() -> None:
    assert cpu_time(f"{SHOWS}; sink.__enter__(); cli._run(['--help']); sink.__exit__(None, None, None)") < 0.3


# -- on a terminal -----------------------------------------------------------------------------------


@contextlib.contextmanager
def on_a_terminal(*arguments: Any, **streams: Any) -> Iterator[tuple[subprocess.Popen[Any], int]]:
    """A process whose standard error, or what else is None, is a terminal; and the terminal's other end."""
    ours, theirs = pty.openpty()
    streams = {"stderr": theirs} | {name: theirs if each is None else each for name, each in streams.items()}
    where = environment(TERM="xterm", COLUMNS="80", LINES="24")
    with subprocess.Popen(command(*arguments, first=HEED_INTERRUPTS), env=where, **streams) as process:
        os.close(theirs)
        try:
            yield process, ours
        finally:
            process.kill()
            os.close(ours)


def read_until(terminal: int, pattern: str = "(?!)") -> str:
    """What a terminal shows until something is there, or else to the end."""
    shown = b""
    while not re.search(pattern, shown.decode(errors="ignore")):
        try:
            part = os.read(terminal, 1 << 12)
        except OSError:  # how Linux ends it
            part = b""
        if not part:
            break
        shown += part
    return shown.decode()


def test_a_fit_shows_its_progress_on_a_terminal(plain: Fitted, tmp_path: Path) -> None:
    arguments = ("fit", plain.ratings, "-o", tmp_path / "m.bemf", "-p", "n_iterations=20000")
    with on_a_terminal(*arguments, stdout=subprocess.PIPE) as (process, terminal):
        shown = read_until(terminal)
        assert process.stdout
        out = process.stdout.read().decode()
        assert process.wait() == 0
    shares = [int(each) for each in re.findall(r"(\d+)%", shown)]
    assert "Learning" in shown
    assert shares == sorted(shares)
    assert len(set(shares)) > 5
    assert any(share < 50 for share in shares)
    assert any(share > 50 for share in shares)
    assert out.startswith("ratings  400 ratings")
    assert "\x1b" not in out
    assert "Learning" not in out


def test_progress_is_for_terminals_only(plain: Fitted, tmp_path: Path) -> None:
    assert works("fit", plain.ratings, "-o", tmp_path / "m.bemf").err == ""
    assert works("recommend", plain.model).err == ""


def test_a_terminal_shows_tables(plain: Fitted) -> None:
    with on_a_terminal("recommend", plain.model, "-u", name(1), stdout=None) as (process, terminal):
        shown = read_until(terminal)
        assert process.wait() == 0
    rows = [line.split() for line in re.sub(r"\x1b\[[?0-9;]*[A-Za-z]", "", shown).splitlines()]
    assert ["user", "rank", "item", "prediction", "reliability", "p_like"] in rows
    best = library.load(plain.model).recommend(name(1)).to_frame("pyarrow").to_pylist()[0]
    row = [*name(1).split(), "1", f"{best['item']}", f"{best['prediction']:g}"]
    assert [*row, f"{best['reliability']:.2f}", f"{best['p_like']:.2f}"] in rows


# -- interrupted -------------------------------------------------------------------------------------


def test_ctrl_c_in_the_middle_of_a_fit(tmp_path: Path) -> None:
    old = fitted(tmp_path)
    before = contents(tmp_path)
    arguments = ("fit", old.ratings, "-o", old.model, *LONG)
    with on_a_terminal(*arguments, stdout=subprocess.PIPE) as (process, terminal):
        read_until(terminal, "Learning")
        time.sleep(0.2)
        process.send_signal(signal.SIGINT)
        began = time.monotonic()
        shown = read_until(terminal)
        assert process.stdout
        assert process.stdout.read() == b""
        assert process.wait() == 1
        assert time.monotonic() - began < 5
    assert shown.endswith("bemf: interrupted\r\n")
    assert "Traceback" not in shown
    assert contents(tmp_path) == before


@pytest.mark.parametrize("after", [None, 0, 0.01, 0.1, 0.3])
def test_ctrl_c_where_nobody_watches(after: float | None, tmp_path: Path) -> None:
    """While it waits for more, or so many seconds after the last of it: it reads, imports, learns.

    What a pipe does not hold tells that it has begun to read.
    """
    rows = "user,item,rating\n" + "".join(f"a long name {n % 9999},{n % 997},{n % 5}\n" for n in range(20_000))
    arguments = command("fit", "-", "-o", tmp_path / "m.bemf", *LONG, "--duplicates", "last", first=HEED_INTERRUPTS)
    pipe = subprocess.PIPE
    with subprocess.Popen(arguments, stdin=pipe, stdout=pipe, stderr=pipe) as process:
        assert process.stdin
        assert process.stderr
        process.stdin.write(rows.encode())
        process.stdin.flush()
        if after is not None:
            process.stdin.close()
        time.sleep(0.5 if after is None else after)
        process.send_signal(signal.SIGINT)
        err = process.stderr.read().decode()
        assert one_line(err, process.wait()) == "interrupted"
    assert contents(tmp_path) == {}


@pytest.fixture
def interruptible() -> Iterator[None]:
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    signal.signal(signal.SIGINT, before)


def swallowed(_: str) -> None:
    with contextlib.suppress(KeyboardInterrupt):
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(10)
    time.sleep(10)


def taken_for_something_else(_: str) -> None:
    try:
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(10)
    except KeyboardInterrupt:
        raise ImportError("half a module") from None


@pytest.mark.usefixtures("interruptible")
@pytest.mark.parametrize("spoil", [swallowed, taken_for_something_else])
def test_ctrl_c_that_somebody_else_takes(spoil: Any, plain: Fitted, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bemf.persistence.load", spoil)
    began = time.monotonic()
    assert fails("info", plain.model) == "interrupted"
    assert time.monotonic() - began < 5
    time.sleep(0.3)  # nothing comes after it


def test_ctrl_c_stays_ignored_where_it_is(plain: Fitted, monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a shell's background jobs."""

    def load(path: str) -> Any:
        os.kill(os.getpid(), signal.SIGINT)
        return read(path)

    read = library.load
    monkeypatch.setattr("bemf.persistence.load", load)
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        works("info", plain.model)
    finally:
        signal.signal(signal.SIGINT, before)


# -- killed ------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_killed_fit_leaves_the_old_model_or_the_new(tmp_path: Path) -> None:
    target = fitted(tmp_path).model
    ratings = write_ratings(tmp_path / "others.csv", seed=1)
    wanted = {seed: library.BeMF(random_state=seed).fit(library.Ratings.read(ratings)) for seed in range(10)}
    lasted: list[float] = []
    when = random.Random(0)
    for seed in wanted:
        old, began = target.read_bytes(), time.monotonic()
        with subprocess.Popen(command("fit", ratings, "-o", target, "--seed", seed), stdout=subprocess.DEVNULL) as fit:
            with contextlib.suppress(subprocess.TimeoutExpired):
                fit.wait(when.uniform(0.5, 1.1) * statistics.median(lasted) if lasted else None)
            fit.send_signal(signal.SIGKILL)
        if fit.returncode == 0:
            lasted.append(time.monotonic() - began)
        if target.read_bytes() != old:
            assert library.load(target).history_ == wanted[seed].history_
        else:
            assert fit.returncode == -signal.SIGKILL
    assert 0 < len(lasted) < 10, "none was killed, or all were"
