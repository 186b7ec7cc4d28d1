"""What is typed: hyperparameters, columns, ids, shares; and what shells complete."""

from __future__ import annotations

import json
import math
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bemf import BeMF, BemfError, Vocabulary
from bemf.cli import COMMANDS
from bemf.cli.fit import SAID_OTHERWISE
from bemf.cli.ids import as_ids_of
from bemf.cli.options import Share, column, parsed
from bemf.cli.output import lines
from bemf.datasets import available
from bemf.models import MODELS
from command_line import bemf, environment
from strategies import WHOLE, WORDS

LETTERS = st.text(st.sampled_from("aéß漢"), min_size=1)


@contextmanager
def refusal() -> Iterator[list[str]]:
    """What an error of ours said, if there was one."""
    words: list[str] = []
    try:
        yield words
    except BemfError as error:
        words.append(str(error))


# -- hyperparameters ---------------------------------------------------------------------------------

PLAIN = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text()
NAMES = st.text(st.characters(exclude_characters="=", codec="utf-8"))


@given(st.dictionaries(NAMES, PLAIN | st.lists(PLAIN)))
def test_values_in_json_are_themselves(settings: dict[str, Any]) -> None:
    wanted = {name: tuple(value) if isinstance(value, list) else value for name, value in settings.items()}
    assert parsed(tuple(f"{name}={json.dumps(value)}" for name, value in settings.items())) == wanted


@given(NAMES, st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False))
def test_values_in_python_are_themselves(name: str, value: Any) -> None:
    (got,) = parsed((f"{name}={value!r}",)).values()
    assert (type(got), got) == (type(value), value)


@given(NAMES, st.text(st.characters(exclude_characters='0123456789"[{', codec="utf-8")))
def test_other_values_are_texts(name: str, value: str) -> None:
    """Whatever is no JSON: neither a number nor in quotes or brackets, nor one of a few words."""
    words = {"true", "false", "null", "True", "False", "None", "NaN", "Infinity", "-Infinity"}
    if value.strip(" \t\n\r") not in words:
        assert parsed((f"{name}={value}",)) == {name: value}


@given(st.text())
def test_any_setting_is_read_or_refused(text: str) -> None:
    if "=" in text:
        assert list(parsed((text,))) == [text[: text.index("=")]]
    else:
        with pytest.raises(click.BadParameter, match="NAME=VALUE"):
            parsed((text,))


@pytest.mark.parametrize("text", ["9" * 5000, "[" * 100_000, '{"a": [1'])
def test_what_no_parser_takes_is_a_text(text: str) -> None:
    assert parsed((f"x={text}",)) == {"x": text}


def test_the_last_value_counts() -> None:
    assert parsed(("a=1", "b=2", "a=3")) == {"a": 3, "b": 2}


@given(st.sampled_from(sorted(BeMF().get_params())), st.text(max_size=8) | PLAIN.map(json.dumps))
def test_any_hyperparameter_is_taken_or_refused(name: str, value: str) -> None:
    """The errors that the command line knows, and no others."""
    with refusal() as words:
        BeMF(**parsed((f"{name}={value}",))).check_parameters()
    assert all(name in said for said in words)


# -- columns, ids, shares ----------------------------------------------------------------------------


@given(st.text() | st.integers(0, 10**6).map(str) | st.text(st.characters(categories=("Nd", "No", "Nl"))))
def test_a_column_is_a_number_if_it_is_of_ascii_digits(text: str) -> None:
    wanted: str | int = int(text) if re.fullmatch("[0-9]+", text) else text
    assert column(text) == wanted
    assert isinstance(column(text), type(wanted))


def test_no_column_is_none() -> None:
    assert column(None) is None


@given(st.lists(WHOLE, min_size=1, max_size=9))
def test_whole_numbers_are_read_back(ids: list[int]) -> None:
    vocabulary = Vocabulary(sorted(set(ids)))
    assert as_ids_of(vocabulary, [str(one) for one in ids]) == ids
    assert (vocabulary.index(as_ids_of(vocabulary, [str(one) for one in ids])) >= 0).all()


@given(st.lists(WORDS | WHOLE.map(str), min_size=1, max_size=9))
def test_texts_are_themselves(ids: list[str]) -> None:
    assert as_ids_of(Vocabulary(sorted(set(ids))), ids) == ids


@given(st.text() | st.from_regex(r"-*[0-9٣²]+", fullmatch=True))
def test_any_typed_number_is_read_or_refused(typed: str) -> None:
    with refusal() as words:
        assert as_ids_of(Vocabulary([1, 2]), [typed]) == [int(typed)]
    assert bool(words) != bool(re.fullmatch("-?[0-9]{1,19}", typed))
    assert all(repr(typed) in said for said in words)


@given(st.floats())
def test_shares_are_from_0_to_1(number: float) -> None:
    for share, within in ((Share(), 0 <= number <= 1), (Share(max_open=True), 0 <= number < 1)):
        if within:
            assert share.convert(repr(number), None, None) == number
        else:
            with pytest.raises(click.BadParameter):
                share.convert(repr(number), None, None)
    assert not math.isnan(number) or not within


@given(st.dictionaries(LETTERS, LETTERS))
def test_lines_are_in_columns(facts: dict[str, str]) -> None:
    shown = lines(facts).split("\n") if facts else []
    assert [line.split() for line in shown] == [[*pair] for pair in facts.items()]
    assert len({len(line) - len(value) for line, value in zip(shown, facts.values(), strict=True)}) <= 1


# -- completion --------------------------------------------------------------------------------------


@pytest.fixture
def completed(monkeypatch: pytest.MonkeyPatch) -> Any:
    """What bash is told for the words typed so far, the last of them unfinished."""

    def complete(*words: str) -> list[str]:
        monkeypatch.setenv("_BEMF_COMPLETE", "bash_complete")
        monkeypatch.setenv("COMP_WORDS", " ".join(["bemf", *(word or "''" for word in words)]))
        monkeypatch.setenv("COMP_CWORD", str(len(words)))
        done = bemf()
        assert (done.status, done.err) == (0, "")
        return done.text.split()

    return complete


def test_commands_are_completed(completed: Any) -> None:
    assert completed("") == [f"plain,{each}" for each in COMMANDS]
    assert completed("re") == ["plain,recommend"]


def test_models_and_hyperparameters_are_completed(completed: Any) -> None:
    assert completed("fit", "--model", "") == [f"plain,{each}" for each in MODELS]
    assert completed("fit", "--model", "x") == []
    settable = [f"plain,{each}=" for each in BeMF().get_params() if each not in SAID_OTHERWISE]
    assert completed("fit", "-p", "") == settable
    assert completed("fit", "--model", "BeMF", "-p", "n_f") == ["plain,n_factors="]
    assert completed("fit", "--model", "none", "-p", "n_f") == ["plain,n_factors="]


def test_data_sets_and_files_are_completed(completed: Any) -> None:
    assert completed("datasets", "") == [f"plain,{each.name}" for each in available()]
    assert completed("datasets", "ml1") == ["plain,ml100k", "plain,ml1m", "plain,ml10m"]
    assert completed("fit", "dem") == ["plain,demo"]
    assert completed("fit", "") == ["file,"]
    assert completed("fit", "rat") == ["file,rat"]
    for words in ("fit -o", "predict", "recommend m --titles", "recommend m --items", "similar m 1 -o", "demo -o"):
        assert completed(*words.split(), "a") == ["file,a"]


@pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash")
def test_bash_completes() -> None:
    """With the script that it is given, and the command that was installed."""
    home = Path(sys.executable).parent
    if not (home / "bemf").exists():
        pytest.skip("the command is not beside the interpreter")
    script = """
eval "$(_BEMF_COMPLETE=bash_source bemf)"
COMP_WORDS=(bemf fit --mo) COMP_CWORD=2
_bemf_completion bemf --mo fit
echo "${COMPREPLY[@]}"
"""
    path = f"{home}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-c", script], capture_output=True, text=True, check=False, env=environment(PATH=path)
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "--model\n", "")
