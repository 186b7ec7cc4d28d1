"""The README's code runs, and prints what the README shows."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

import bemf

README = Path(__file__).parent.parent / "README.md"
if not README.exists():
    pytest.skip("no README beside the tests", allow_module_level=True)
BLOCKS = re.findall(r"```(\w+)\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)
PYTHON = [text for kind, text in BLOCKS if kind == "python"]


def test_ten_lines_print_what_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    exec(compile(PYTHON[0], "README.md", "exec"), {})
    shown = next(text for kind, text in BLOCKS if kind == "text")
    assert capsys.readouterr().out.split() == shown.split()


def test_the_rest_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    pairs = rng.choice(900, 400, replace=False)
    ratings = bemf.Ratings.from_arrays(pairs // 30, pairs % 30, rng.integers(1, 6, 400))
    ratings.to_frame("pandas").to_csv(tmp_path / "ratings.csv", index=False)
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {"bemf": bemf}
    for block in PYTHON[1:]:
        exec(compile(block, "README.md", "exec"), names)
    assert isinstance(names["model"], bemf.BeMF)
    assert isinstance(names["sure"], bemf.Forecast)
