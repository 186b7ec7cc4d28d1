"""Output that cannot be written: one clear line, and the file that was there before."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import bemf as library
from bemf.cli import main
from command_line import (
    Fitted,
    bemf,
    command,
    contents,
    fails,
    fitted,
    in_process,
    name,
    one_line,
    plain,
    works,
    write_ratings,
)

__all__ = ["plain"]

# -- folders -----------------------------------------------------------------------------------------

WRITERS: dict[str, tuple[str, ...]] = {
    "fit": ("fit", "R", "-o"),
    "predict": ("predict", "M", "R", "-o"),
    "recommend": ("recommend", "M", "-o"),
    "similar": ("similar", "M", "1", "-o"),
    "datasets": ("datasets", "demo", "-o"),
    "demo": ("demo", "-o"),
}


@pytest.fixture
def write(request: pytest.FixtureRequest, plain: Fitted) -> list[Any]:
    """A command that writes, but for the file's name."""
    return [{"M": plain.model, "R": plain.ratings}.get(each, each) for each in WRITERS[request.param]]


each_writer = pytest.mark.parametrize("write", WRITERS, indirect=True)


@each_writer
def test_no_such_folder(write: list[Any], tmp_path: Path) -> None:
    file = tmp_path / "deep" / "out.csv"
    assert fails(*write, file) == f"{file.parent} is no folder, so {file} cannot be written"


@each_writer
def test_a_folder_in_place_of_the_file(write: list[Any], tmp_path: Path) -> None:
    assert fails(*write, tmp_path) == f"{tmp_path} is a folder; name a file to write to"


@each_writer
def test_a_folder_that_takes_no_files(write: list[Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As the system says before the work, to those who are not root."""
    monkeypatch.setattr(os, "access", lambda path, mode: str(path) != str(tmp_path) or mode != os.W_OK)
    assert "takes no new files" in fails(*write, tmp_path / "out.csv")
    assert contents(tmp_path) == {}


@each_writer
def test_a_folder_that_takes_no_files_in_the_end(
    write: list[Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(**_: Any) -> None:
        raise PermissionError(13, "Permission denied", "somewhere")

    (tmp_path / "out.csv").write_text("old")
    monkeypatch.setattr("tempfile.mkstemp", refuse)
    done = bemf(*write, tmp_path / "out.csv")
    assert one_line(done.err, done.status) == f"{tmp_path / 'out.csv'}: Permission denied"
    assert contents(tmp_path) == {"out.csv": b"old"}


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="/proc takes no files, even from root")
@pytest.mark.parametrize("write", ["fit", "predict"], indirect=True)
def test_a_folder_that_takes_no_files_of_anybody(write: list[Any]) -> None:
    assert "/proc/out.csv" in fails(*write, "/proc/out.csv")


# Root can do more to files than their permissions say, unless it gives that up for itself and what it starts.
KEEP_TO_PERMISSIONS = """
import ctypes, os, sys
PR_CAPBSET_DROP, CAP_DAC_OVERRIDE = 24, 1
if os.geteuid() == 0 and ctypes.CDLL(None).prctl(PR_CAPBSET_DROP, CAP_DAC_OVERRIDE, 0, 0, 0):
    sys.exit(99)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="capabilities are Linux's")
@pytest.mark.parametrize("write", ["fit", "predict", "demo"], indirect=True)
def test_a_folder_that_may_only_be_read(write: list[Any], tmp_path: Path) -> None:
    folder = tmp_path / "theirs"
    folder.mkdir()
    (folder / "out.csv").write_text("old")
    folder.chmod(0o555)
    done = in_process(*write, folder / "out.csv", first=KEEP_TO_PERMISSIONS)
    folder.chmod(0o755)
    if done.returncode == 99:
        pytest.skip("root cannot be made to keep to permissions here")
    assert "takes no new files" in one_line(done.stderr.decode(), done.returncode)
    assert contents(folder) == {"out.csv": b"old"}


@pytest.mark.parametrize("ending", ["csv", "parquet", "jsonl", "arrow"])
def test_a_table_that_fails_halfway_leaves_the_old_file(
    plain: Fitted, ending: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_: int) -> None:
        raise OSError(28, "No space left on device")

    file = tmp_path / f"out.{ending}"
    file.write_text("old")
    monkeypatch.setattr(os, "fsync", fail)
    assert fails("recommend", plain.model, "-o", file) == f"{file}: No space left on device"
    assert contents(tmp_path) == {file.name: b"old"}


def test_a_failed_fit_leaves_the_old_model(tmp_path: Path) -> None:
    old = fitted(tmp_path)
    before = contents(tmp_path)
    write_ratings(tmp_path / "other.csv", seed=3).write_text("user,item,rating\n1,2,x\n")
    fails("fit", tmp_path / "other.csv", "-o", old.model)
    fails("fit", old.ratings, "-o", old.model, "-p", "learning_rate=100", "-p", "biases=True")
    assert {key: value for key, value in contents(tmp_path).items() if key != "other.csv"} == before
    assert library.load(old.model).forecast([(name(1), 1)]).known.all()


# -- full disks --------------------------------------------------------------------------------------


FILES_OF_A_KILOBYTE = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))"


@pytest.mark.parametrize("write", ["fit", "predict", "demo"], indirect=True)
def test_a_disk_that_fills_up(write: list[Any], tmp_path: Path) -> None:
    file = tmp_path / "out.csv"
    file.write_text("old")
    done = in_process(*write, file, first=FILES_OF_A_KILOBYTE)
    assert one_line(done.stderr.decode(), done.returncode) == f"{file}: File too large"
    assert contents(tmp_path) == {"out.csv": b"old"}


FULL = Path("/dev/full")
needs_full = pytest.mark.skipif(not FULL.exists(), reason="there is no /dev/full")


@needs_full
@pytest.mark.parametrize("write", ["fit", "predict", "recommend", "similar"], indirect=True)
def test_a_full_device(write: list[Any]) -> None:
    assert fails(*write, FULL) == "/dev/full: No space left on device"


@needs_full
@pytest.mark.parametrize("arguments", [("recommend", "M"), ("info", "M"), ("--help",)])
def test_a_full_standard_output(plain: Fitted, arguments: tuple[str, ...]) -> None:
    with FULL.open("wb") as full:
        asked = [plain.model if each == "M" else each for each in arguments]
        done = in_process(*asked, stdout=full, stderr=subprocess.PIPE)
    message = one_line(done.stderr.decode(), done.returncode)
    assert message == "the output cannot be written: No space left on device"


@needs_full
def test_what_cannot_be_written_is_let_go_of(
    plain: Fitted, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Else Python would try again when it ends, and complain."""
    with FULL.open("w") as full:
        monkeypatch.setattr(sys, "stdout", full)
        with pytest.raises(SystemExit) as ended:
            main(["info", str(plain.model)])
        monkeypatch.undo()
    assert "cannot be written" in one_line(capsys.readouterr().err, int(str(ended.value.code)))


# -- pipes -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["csv", "json", "arrow"])
def test_a_reader_that_has_seen_enough(plain: Fitted, form: str, tmp_path: Path) -> None:
    """As `bemf predict … | head -1`: more than a pipe holds is not written."""
    pairs = "user,item\n" + f"{name(1)},1\n" * 20_000
    (tmp_path / "pairs.csv").write_text(pairs)
    arguments = command("predict", plain.model, tmp_path / "pairs.csv", "--format", form)
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout
        assert process.stderr
        assert len(process.stdout.read(10)) == 10
        process.stdout.close()
        err = process.stderr.read().decode()
    assert one_line(err, process.returncode) == "the output cannot be written: Broken pipe"


def test_a_pipe_in_place_of_a_file(plain: Fitted) -> None:
    done = in_process("recommend", plain.model, "-o", "/dev/stdout")
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout == works("recommend", plain.model).out


@pytest.mark.parametrize("form", ["parquet", "arrow", "csv"])
def test_tables_can_be_piped(plain: Fitted, form: str) -> None:
    done = in_process("recommend", plain.model, "--format", form)
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout == works("recommend", plain.model, "--format", form).out
