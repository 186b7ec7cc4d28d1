"""The pages' code runs and prints what the pages show; what they name and link to is there.

A page is run from top to bottom in one empty folder: blocks of Python in one namespace, blocks of shell as they
would run in a terminal. A block of text is what the block before it prints. A comment `<!-- not run: why -->`
right above a block leaves it out.
"""

from __future__ import annotations

import contextlib
import importlib
import io
import os
import re
import subprocess
import sysconfig
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import bemf

ROOT = Path(__file__).parent.parent
README, DOCS = ROOT / "README.md", ROOT / "docs"
if not README.exists():
    pytest.skip("no README beside the tests", allow_module_level=True)
PAGES = [README, *sorted(DOCS.rglob("*.md"))]
FENCE = re.compile(r"^(<!-- not run: .+ -->\n)?```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
LINK = re.compile(r"(?<!`)\]\(([^)\s]+)\)")
NUMBER = re.compile(r"-?\d[\d,]*(?:\.\d+)?%?")
MODULES = {"bemf": bemf, "bemf.datasets": bemf.datasets, "bemf.metrics": bemf.metrics, "bemf.plots": bemf.plots}


@dataclass(frozen=True)
class Block:
    """A fenced block of a page; `line` is that of its first line of text."""

    kind: str
    text: str
    line: int
    is_run: bool


def blocks(page: str) -> list[Block]:
    return [
        Block(found[2], found[3], page.count("\n", 0, found.start(3)) + 1, not found[1])
        for found in FENCE.finditer(page)
    ]


BLOCKS = {page.relative_to(ROOT).as_posix(): blocks(page.read_text(encoding="utf-8")) for page in PAGES}


# -- running -----------------------------------------------------------------------------------------


def run_python(block: Block, page: str, names: dict[str, Any]) -> str:
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile("\n" * (block.line - 1) + block.text, page, "exec"), names)
    return printed.getvalue()


def run_shell(block: Block, page: str) -> str:
    """What a terminal shows of the output; only there are tables set for people."""
    scripts = sysconfig.get_path("scripts")
    ours, terminal = os.openpty()
    with tempfile.TemporaryFile("w+") as errors:
        process = subprocess.Popen(
            ["bash", "-eu", "-c", block.text],
            env={**os.environ, "PATH": f"{scripts}:{os.environ['PATH']}"},
            stdin=subprocess.DEVNULL,
            stdout=terminal,
            stderr=errors,
        )
        os.close(terminal)
        printed = all_of(ours)
        status = process.wait()
        errors.seek(0)
        assert status == 0, f"{page}:{block.line} ends with {status}: {errors.read()}"
    return printed.replace("\r\n", "\n")


def all_of(terminal: int) -> str:
    parts = []
    with open(terminal, "rb", buffering=0) as stream, contextlib.suppress(OSError):  # the other end is closed
        while part := stream.read(1 << 16):
            parts.append(part)
    return b"".join(parts).decode()


@pytest.mark.parametrize("page", [name for name, found in BLOCKS.items() if found])
def test_code_prints_what_is_shown(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("BEMF_DATA", raising=False)
    monkeypatch.setenv("BEMF_CACHE", str(tmp_path / "cache"))
    names: dict[str, Any] = {}
    printed = None
    for block in BLOCKS[page]:
        if block.kind == "text":
            assert printed is None or not difference(block.text, printed), f"{page}:{block.line}\n{printed}"
        elif block.is_run:
            printed = run_python(block, page, names) if block.kind == "python" else run_shell(block, page)
        else:
            printed = None


def test_blocks_are_of_kinds_that_are_run() -> None:
    kinds = {block.kind for found in BLOCKS.values() for block in found if block.is_run}
    assert kinds == {"python", "sh", "text"}


def test_few_blocks_are_not_run() -> None:
    assert sum(not block.is_run for found in BLOCKS.values() for block in found) <= 5


# -- comparing ---------------------------------------------------------------------------------------


def difference(shown: str, printed: str) -> tuple[str, str] | None:
    """The first words that differ, whatever the spaces between them; a line of … stands for any lines.

    Times may be any. The last digit of a fraction, or its fifth, may differ by one: instruction sets round differently.
    """
    start, left_out, end = shown.partition("\n…\n")
    words, first, last = (re.sub(r"\b[\d.]+ s\b", "… s", text).split() for text in (printed, start, end))
    middle = len(words) - len(first) - len(last)
    if middle < 0 or (middle > 0 and not left_out):
        return f"{len(first) + len(last)} words", f"{len(words)} words"
    pairs = zip(first + last, words[: len(first)] + words[len(first) + middle :], strict=True)
    return next((both for both in pairs if not alike(*both)), None)


def alike(shown: str, printed: str) -> bool:
    if NUMBER.sub("0", shown) != NUMBER.sub("0", printed):
        return False
    return all(near(*both) for both in zip(NUMBER.findall(shown), NUMBER.findall(printed), strict=True))


def near(shown: str, printed: str) -> bool:
    if shown == printed:
        return True
    digits = len(shown.rstrip("%").partition(".")[2])
    a, b = (float(each.rstrip("%").replace(",", "")) for each in (shown, printed))
    return (digits > 0 or "%" in shown) and abs(a - b) < 1.5 * 10 ** -min(digits, 5)


@pytest.mark.parametrize(
    ("shown", "printed"),
    [
        *(("4  0.46\n", "4 0.47"), ("after 0.3 s (0.1 s)", "after 12 s (1.5 s)"), ("46%, 1,000", "45%,  1,000")),
        *(("", ""), ("a\n…\nd\n", "a\nb\nc\nd\n"), ("a\n…\n", "a\nb\n"), ("a\n…\n", "a\n")),
    ],
)
def test_alike(shown: str, printed: str) -> None:
    assert difference(shown, printed) is None


@pytest.mark.parametrize(
    ("shown", "printed"),
    [
        *(("4", "5"), ("1,000", "1,001"), ("0.46", "0.48"), ("0.46", "-0.46"), ("46%", "44%"), ("3 m", "3 s")),
        *(("ann 1", "bob 1"), ("a b", "a"), ("a", "a b"), ("a\n…\nd\n", "a\nc\n"), ("a\n…\na\n", "a\n")),
    ],
)
def test_different(shown: str, printed: str) -> None:
    assert difference(shown, printed) is not None


def test_blocks_are_found() -> None:
    page = "a\n```python\nx = 1\n```\n<!-- not run: installs -->\n```sh\npip\n```\n```text\n```\n"
    assert blocks(page) == [
        Block("python", "x = 1\n", 3, True),
        Block("sh", "pip\n", 7, False),
        Block("text", "", 10, True),
    ]


# -- names and links ---------------------------------------------------------------------------------


def test_every_public_name_is_in_the_reference() -> None:
    text = "".join(page.read_text(encoding="utf-8") for page in (DOCS / "reference").glob("*.md"))
    named = re.findall(r"^::: (\S+)", text, re.MULTILINE)
    described = {re.sub(r"\b(\w+)\.\1$", r"\1", name) for name in named}  # a function that has its module's name
    public = {f"{where}.{name}" for where, module in MODULES.items() for name in module.__all__}
    assert public - described == {"bemf.__version__"}


@pytest.mark.parametrize("page", [*PAGES, ROOT / "CONTRIBUTING.md"], ids=lambda page: page.relative_to(ROOT).as_posix())
def test_links_lead_somewhere(page: Path) -> None:
    links = (link.partition("#")[0] for link in LINK.findall(page.read_text(encoding="utf-8")))
    files = [link for link in links if link and "://" not in link and not link.endswith(".svg")]
    assert [link for link in files if not (page.parent / link).exists()] == []


def test_the_pictures_that_pages_show_are_drawn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pictures = importlib.import_module("pictures")
    monkeypatch.setattr(pictures, "FOLDER", tmp_path / "pictures")
    pictures.main()
    shown = {Path(link).name for page in PAGES for link in LINK.findall(page.read_text(encoding="utf-8"))}
    assert {file.name for file in (tmp_path / "pictures").iterdir()} == {
        link for link in shown if link.endswith(".svg")
    }
