"""bemf demo: what it says, and the page it writes."""

from __future__ import annotations

import re
import socket
import sys
import time
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

import bemf as library
from bemf.cli import COMMANDS
from bemf.report import Report
from command_line import Done, bemf, contents, one_line, works

VOID = {"meta", "br", "hr", "img", "link", "input"}
LOADS = ("src", "href", "data", "action", "poster", "srcset", "xlink:href")


@dataclass
class Element:
    name: str
    attributes: dict[str, str]
    text: str = ""
    inside: list[Element] = field(default_factory=list)

    def all(self, name: str) -> list[Element]:
        """The elements of a name within this one, in their order."""
        return [each for one in self.inside for each in ([one] if one.name == name else []) + one.all(name)]

    def words(self) -> str:
        return self.text + "".join(each.words() for each in self.inside)


class Page(HTMLParser):
    """A page as a tree; elements that are not closed, or closed in the wrong order, are refused."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.root = Element("", {})
        self._open = [self.root]
        self.doctypes: list[str] = []
        self.feed(text)
        self.close()
        assert self._open == [self.root], "not all is closed"

    def handle_decl(self, decl: str) -> None:
        self.doctypes.append(decl)

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        element = Element(tag, {key: value or "" for key, value in attrs})
        assert len(element.attributes) == len(attrs), f"{tag} has an attribute twice"
        self._open[-1].inside.append(element)
        if tag not in VOID:
            self._open.append(element)

    def handle_startendtag(self, tag: str, attrs: Any) -> None:
        self.handle_starttag(tag, attrs)
        self.handle_endtag(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop().name == tag

    def handle_data(self, data: str) -> None:
        self._open[-1].text += data

    def unknown_decl(self, data: str) -> None:
        raise AssertionError(data)


@dataclass(frozen=True)
class Shown:
    done: Done
    page: str
    seconds: float


def no_network(*_: Any, **__: Any) -> None:
    raise AssertionError("the demo wants the network")


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> Shown:
    """The demo, without a network."""
    path = tmp_path_factory.mktemp("demo") / "page.html"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(socket.socket, "connect", no_network)
        patch.setattr(socket, "getaddrinfo", no_network)
        began = time.process_time()
        done = works("demo", "-o", path, "--threads", 2)
        took = time.process_time() - began
    assert list(contents(path.parent)) == ["page.html"]
    return Shown(done, path.read_text(encoding="utf-8"), took)


@pytest.fixture(scope="module")
def facts(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    path = tmp_path_factory.mktemp("demo") / "page.html"
    found: dict[str, Any] = works("demo", "-o", path, "--json").json
    assert found.pop("report") == str(path)
    assert path.exists()
    return found


# -- what it says ------------------------------------------------------------------------------------


def test_it_is_there_soon(shown: Shown) -> None:
    assert shown.seconds < 10


def test_its_numbers_are_the_library_s(facts: dict[str, Any]) -> None:
    train, test = library.datasets.holdout(library.datasets.load("demo"), 0.2, random_state=0)
    model = library.BeMF(random_state=0).fit(train)
    forecast = model.forecast(test)
    assert facts["ratings"] == len(test) == 6000
    assert facts["mae"] == pytest.approx(library.metrics.mae(test, forecast), abs=1e-12)
    assert facts["ece"] == pytest.approx(library.metrics.ece(test, forecast), abs=1e-12)
    (user,) = {row["user"] for row in facts["recommendations"]}
    wanted = model.recommend(user, titles=library.datasets.titles("demo")).to_frame("pyarrow").to_pylist()
    assert facts["recommendations"] == wanted
    assert all(row["title"] == row["item"] for row in wanted)


def test_it_shows_what_it_claims(shown: Shown, facts: dict[str, Any]) -> None:
    """The surer, the smaller the error; promises kept; items that differ in how sure they are."""
    errors = [row["mae"] for row in facts["by_threshold"] if row["coverage"] * facts["ratings"] >= 20]
    assert len(errors) > 3
    assert errors == sorted(errors, reverse=True)
    assert f"{errors[0]:.3f}  100.0%" in shown.done.text
    assert abs(facts["accuracy"] - facts["mean_reliability"]) < 0.03
    trust = [row["reliability"] for row in facts["recommendations"]]
    assert max(trust) - min(trust) > 0.2


def test_it_says_what_to_do_next(shown: Shown) -> None:
    following = re.findall(r"^  bemf (\w+)", shown.done.text, re.MULTILINE)
    assert following == ["fit", "recommend", "predict"]
    assert {*following} < {*COMMANDS}
    assert "page.html" in shown.done.text


# -- the page ----------------------------------------------------------------------------------------


def test_the_page_is_whole_and_of_itself(shown: Shown) -> None:
    page = Page(shown.page)
    assert page.doctypes == ["doctype html"]
    elements = [page.root, *(each for name in names(page.root) for each in page.root.all(name))]
    assert not {"script", "iframe", "link", "object", "embed", "img"} & {each.name for each in elements}
    for element in elements:
        loaded = [value for key, value in element.attributes.items() if key in LOADS]
        assert all(value.startswith("#") for value in loaded), element
        asked = [*element.attributes.values(), element.text if element.name == "style" else ""]
        assert not [each for each in asked if re.search(r"@import|url\((?!#)", each)], element
    ids = [each.attributes["id"] for each in elements if "id" in each.attributes]
    assert len(ids) == len(set(ids)), "pictures share ids"
    used = re.findall(r'(?:url\(#|href="#)([^)"]+)', shown.page)
    assert {*used} <= {*ids}


def names(root: Element) -> set[str]:
    return {each.name for each in root.inside} | {name for each in root.inside for name in names(each)}


def test_the_page_has_the_pictures_and_tables(shown: Shown, facts: dict[str, Any]) -> None:
    root = Page(shown.page).root
    (title,) = root.all("title")[:1]
    assert title.text == root.all("h1")[0].text
    figures = root.all("figure")
    said = [figure.all("figcaption")[0].text for figure in figures]
    labels = [figure.all("svg")[0].attributes["aria-label"] for figure in figures]
    assert labels == ["Error against coverage", "Reliabilities", "Calibration"]
    assert len({*said}) == 3
    assert [len(figure.all("path")) > 20 for figure in figures] == [True] * 3
    films, thresholds = ([row.all("td") for row in table.all("tr")[1:]] for table in root.all("table"))
    assert [row[0].text for row in films] == [row["title"] for row in facts["recommendations"]]
    assert [row[2].text for row in films] == [f"{row['reliability']:.0%}" for row in facts["recommendations"]]
    kept = facts["by_threshold"][: len(thresholds)]
    assert [row[1].text for row in thresholds] == [f"{row['mae']:.2f} stars" for row in kept]
    assert f"{facts['mean_reliability']:.1%} of the cases were right in {facts['accuracy']:.1%}" in root.words()


def test_the_page_is_the_same_each_time(shown: Shown, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    done = works("demo")
    assert "bemf-demo.html" in done.text
    assert list(contents(tmp_path)) == ["bemf-demo.html"]
    assert (tmp_path / "bemf-demo.html").read_text(encoding="utf-8") == shown.page


@pytest.mark.parametrize("options", [(), ("--json",)])
def test_without_matplotlib_it_does_what_it_can(
    shown: Shown, options: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The words come before the report; machines get all or nothing."""
    for module in [*filter(re.compile(r"matplotlib(\.|$)").match, sys.modules), "matplotlib", "matplotlib.figure"]:
        monkeypatch.setitem(sys.modules, module, None)
    done = bemf("demo", "-o", tmp_path / "page.html", *options)
    assert one_line(done.err, done.status) == 'plots need matplotlib; install it: pip install "bemf[plot]"'
    assert contents(tmp_path) == {}
    said = shown.done.text.partition("\nThe pictures are in")[0]
    seconds = r"[\d.]+ s;"
    assert re.sub(seconds, "", done.text) == ("" if options else re.sub(seconds, "", said))


# -- reports of any kind -----------------------------------------------------------------------------


def test_a_report_escapes_what_it_is_given() -> None:
    nasty = "<script>alert('x')</script> & \"so on\""
    report = Report(nasty, nasty)
    report.section(nasty, nasty, nasty).text(nasty)
    report.section("Tables").table({nasty: [nasty, "1"], "b": ["", nasty]}, numbers=["b"])
    report.figures({'<svg aria-label="A"></svg>': nasty})
    root = Page(report.html()).root
    assert not root.all("script")
    assert root.all("title")[0].text == root.all("h1")[0].text == root.all("figcaption")[0].text == nasty
    assert [each.text for each in root.all("p")] == [nasty] * 4
    assert [[cell.text for cell in row.all("td")] for row in root.all("tr")[1:]] == [[nasty, ""], ["1", nasty]]
    assert [each.attributes.get("class") for each in root.all("th")] == [None, "number"]
    assert [each.attributes["scope"] for each in root.all("th")] == ["col"] * 2


def test_columns_of_a_table_are_equally_long() -> None:
    with pytest.raises(ValueError, match="shorter"):
        Report("a", "b").table({"one": ["1"], "two": []})
