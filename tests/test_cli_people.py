"""Titles, candidates, and people who come with ratings of their own."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import bemf as library
from command_line import (
    N_ITEMS,
    N_USERS,
    Fitted,
    bemf,
    contents,
    digits,
    each_kind,
    fails,
    fitted,
    name,
    plain,
    strange,
    works,
    write_csv,
)

__all__ = ["each_kind", "plain"]

MINE = [(0, 5), (1, 1), (2, 4), (3, 1), (4, 5), (5, 2)]  # items and their ratings


def rows_of(answer: Any) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = answer.to_frame("pyarrow").to_pylist()
    return rows


def for_them(model: Path, rows: list[tuple[Any, Any, int]], **options: Any) -> list[dict[str, Any]]:
    """What the library recommends to people whom it folds in."""
    made = library.load(model)
    ratings = library.Ratings.from_arrays(*map(list, zip(*rows, strict=True)), scores=made.classes_)
    return rows_of(made.fold_in(ratings).recommend(list(ratings.users), **options))


# -- people with ratings of their own ----------------------------------------------------------------


@pytest.mark.parametrize("header", [True, False])
@pytest.mark.parametrize("delimiter", [",", "::", "\t"])
def test_one_visitor(plain: Fitted, header: bool, delimiter: str, tmp_path: Path) -> None:
    rows = [("item", "rating")] * header + MINE
    (tmp_path / "mine.csv").write_text("".join(f"{item}{delimiter}{rating}\n" for item, rating in rows))
    done = works("recommend", plain.model, "--ratings", tmp_path / "mine.csv", "-n", 5, "--json")
    assert done.json == for_them(plain.model, [("you", item, rating) for item, rating in MINE], n=5)
    assert {row["user"] for row in done.json} == {"you"}
    assert not {row["item"] for row in done.json} & {item for item, _ in MINE}
    piped = works("recommend", plain.model, "--ratings", "-", "-n", 5, "--json",
                  stdin=(tmp_path / "mine.csv").read_bytes())  # fmt: skip
    assert piped.out == done.out


def test_a_visitor_of_each_kind(each_kind: Fitted, tmp_path: Path) -> None:
    mine = [(each_kind.item(item), rating) for item, rating in MINE]
    write_csv(tmp_path / "mine.csv", ("rating", "item"), [(rating, item) for item, rating in mine])
    done = works("recommend", each_kind.model, "--ratings", tmp_path / "mine.csv", "--json")
    who: Any = N_USERS if each_kind.user is int else "you"
    assert done.json == for_them(each_kind.model, [(who, *row) for row in mine])


@pytest.mark.parametrize("header", [True, False])
def test_people_with_names(each_kind: Fitted, header: bool, tmp_path: Path) -> None:
    """Two who are new and one who was in training."""
    who = [each_kind.user(n) for n in (500, 3, 501)]
    rows = [(user, each_kind.item(item), rating) for user in who for item, rating in MINE]
    write_csv(tmp_path / "theirs.csv", ("user", "item", "rating") if header else (), rows)
    more = () if header else ("--no-header",)
    done = works("recommend", each_kind.model, "--ratings", tmp_path / "theirs.csv", "--json", "-n", 4, *more)
    assert done.json == for_them(each_kind.model, rows, n=4)
    assert {row["user"] for row in done.json} == set(who)
    model = library.load(each_kind.model)
    seen = {model.items_[n] for n in model.seen().take([model.users_.index([who[1]])[0]]).indices}
    assert len(seen) > 3
    assert not {row["item"] for row in done.json if row["user"] == who[1]} & seen, "training is forgotten"


def test_a_visitor_has_an_id_that_nobody_has(tmp_path: Path) -> None:
    (tmp_path / "mine.csv").write_text("item,rating\n0,5\n1,1\n")
    cases: list[tuple[list[Any], Any]] = [(["you", "me", "you 2"], "you 3"), ([0, 2, 2**63 - 1], 1), ([1, 2, 3], 0)]
    for users, wanted in cases:
        ratings = library.Ratings.from_arrays([each for each in users for _ in range(3)], [0, 1, 2] * 3, [1, 5, 1] * 3)
        library.BeMF(random_state=0).fit(ratings).save(tmp_path / "m.bemf")
        (best,) = works("recommend", tmp_path / "m.bemf", "--ratings", tmp_path / "mine.csv", "--json").json
        assert (best["user"], best["item"]) == (wanted, 2)


def test_items_that_nobody_knows_are_named(plain: Fitted) -> None:
    known = "".join(f"{item},{rating}\n" for item, rating in MINE)
    done = bemf("recommend", plain.model, "--ratings", "-", "--json", stdin=f"item,rating\n{known}777,4\n")
    assert (done.status, done.err) == (0, "bemf: 1 item without a rating in training: 777\n")
    assert len(done.json) == 10
    message = fails("recommend", plain.model, "--ratings", "-", stdin="item,rating\n777,4\n778,4\n777,5\n")
    assert message == "2 items without a rating in training: 777, 778"


def test_ratings_must_be_on_the_scale(plain: Fitted) -> None:
    message = fails("recommend", plain.model, "--ratings", "-", stdin="item,rating\n1,3\n2,4\n")
    assert "off the scale 1, 2, 4, 5: 3 by user 'you' for item 1" in message


def test_the_model_s_file_is_left_alone(tmp_path: Path) -> None:
    made = fitted(tmp_path)
    before = contents(tmp_path)
    works("recommend", made.model, "--ratings", "-", stdin="item,rating\n1,4\n")
    assert contents(tmp_path) == before


# -- candidates --------------------------------------------------------------------------------------


@pytest.mark.parametrize("columns", [("item",), ("item", "title"), ("nr", "title", "item")])
def test_candidates_are_items_of_a_file(each_kind: Fitted, columns: tuple[str, ...], tmp_path: Path) -> None:
    chosen = [each_kind.item(n) for n in (3, 1, 4, 15, 9, 2, 6)]
    cells = {"item": chosen, "title": [f"A; B, {n}" for n in chosen], "nr": list(range(7))}
    write_csv(tmp_path / "items.csv", columns, zip(*(cells[each] for each in columns), strict=True))
    done = works("recommend", each_kind.model, "--items", tmp_path / "items.csv", "--json", "-n", 3)
    assert done.json == rows_of(library.load(each_kind.model).recommend(n=3, items=chosen))
    assert {row["item"] for row in done.json} <= set(chosen)


def test_candidates_without_a_header(plain: Fitted, tmp_path: Path) -> None:
    (tmp_path / "items.txt").write_text("3\n1\n4\n")
    done = works("recommend", plain.model, "--items", tmp_path / "items.txt", "--json")
    assert {row["item"] for row in done.json} == {3, 1, 4}
    texts = fitted(tmp_path, "strange texts")
    write_csv(tmp_path / "items.txt", (), [(strange(n),) for n in (3, 1, 4)])
    done = works("recommend", texts.model, "--items", tmp_path / "items.txt", "--no-header", "--json")
    assert {row["item"] for row in done.json} == {strange(n) for n in (3, 1, 4)}


def test_candidates_that_nobody_knows_are_named(plain: Fitted, tmp_path: Path) -> None:
    (tmp_path / "items.csv").write_text("item\n77\n3\n78\n")
    done = bemf("recommend", plain.model, "--items", tmp_path / "items.csv", "--json")
    assert (done.status, done.err) == (0, "bemf: 2 items without a rating in training: 77, 78\n")
    assert {row["item"] for row in done.json} == {3}
    (tmp_path / "items.csv").write_text("item\n77\n78\n77\n")
    message = fails("recommend", plain.model, "--items", tmp_path / "items.csv")
    assert message == "2 items without a rating in training: 77, 78"


def test_nothing_may_be_left_to_recommend(plain: Fitted) -> None:
    assert works("recommend", plain.model, "--min-reliability", 1, "--json").json == []


# -- titles ------------------------------------------------------------------------------------------


def title(n: int) -> str:
    return f'Nº {n}, "le Prénom"\n(漢字; ün)'


@pytest.fixture
def titles(each_kind: Fitted, tmp_path: Path) -> Path:
    """Titles of all items but the first, in another order, and of one that nobody rated."""
    rows = [(title(n), each_kind.item(n)) for n in range(N_ITEMS, 0, -1)]
    return write_csv(tmp_path / "films.csv", ("title", "item"), rows)


@pytest.mark.parametrize("form", ["csv", "json"])
def test_titles_are_joined(each_kind: Fitted, titles: Path, form: str, tmp_path: Path) -> None:
    numbers = [0, 5, 1, 5]
    asked = [(each_kind.user(n), each_kind.item(n)) for n in numbers]
    write_csv(tmp_path / "pairs.csv", ("user", "item"), asked)
    wanted = {str(each_kind.item(n)): title(n) if n else None for n in range(N_ITEMS)}
    for arguments, item, column in (
        (("predict", each_kind.model, tmp_path / "pairs.csv"), "item", "title"),
        (("recommend", each_kind.model), "item", "title"),
        (("similar", each_kind.model, each_kind.item(1)), "similar", "similar_title"),
    ):
        done = works(*arguments, "--titles", titles, "--format", form)
        rows = done.json if form == "json" else list(csv.DictReader(io.StringIO(done.text, newline="")))
        assert len(rows) >= 4
        assert [row[column] or None for row in rows] == [wanted[str(row[item])] for row in rows]
        without = works(*arguments, "--json").json
        assert [str(row[item]) for row in without] == [str(row[item]) for row in rows]


def test_digits_are_numbers_or_texts_as_the_model_has_them(tmp_path: Path) -> None:
    """ "007" is 7 where ids are numbers, and is not "7" where they are texts."""
    numbers = fitted(tmp_path, "numbers")
    (tmp_path / "films.csv").write_text("item,title\n007,Seven\n8,Eight\n")
    rows = works("similar", numbers.model, "007", "-n", 39, "--titles", tmp_path / "films.csv", "--json").json
    assert {row["item"] for row in rows} == {7}
    assert {row["similar"]: row["similar_title"] for row in rows}[8] == "Eight"
    texts = fitted(tmp_path, "texts of digits")
    rows = works("similar", texts.model, digits(8), "-n", 39, "--titles", tmp_path / "films.csv", "--json").json
    assert {row["similar"]: row["similar_title"] for row in rows if row["similar_title"]} == {"007": "Seven"}
    assert fails("similar", texts.model, "7") == "1 item without a rating in training: 7"


@pytest.mark.parametrize("kind", [pl.Int32, pl.Float64, pl.String])
@pytest.mark.parametrize("made", ["numbers", "texts"])
def test_ids_in_columns_of_any_type(kind: Any, made: str, tmp_path: Path) -> None:
    """Parquet's own types, of whole numbers and of texts of such, fit models of either."""
    pairs = [(u, i) for u in range(8) for i in range(8)]
    of: Any = int if made == "numbers" else str
    ratings = library.Ratings.from_arrays([of(u) for u, _ in pairs], [of(i) for _, i in pairs], [1, 5] * 32)
    library.BeMF(random_state=0).fit(ratings.select(ratings.item_index != ratings.user_index)).save(tmp_path / "m.bemf")
    cells = [[str(n) if kind == pl.String else n for n in column] for column in zip(*pairs[8:16], strict=True)]
    frame = pl.DataFrame({"user": cells[0], "item": cells[1], "rating": [5, 1] * 4, "title": list("abcdefgh")},
                         schema_overrides={"user": kind, "item": kind})  # fmt: skip
    frame.write_parquet(tmp_path / "f.parquet")
    for command in ("predict", "evaluate"):
        assert works(command, tmp_path / "m.bemf", tmp_path / "f.parquet", "--json").json
    rows = works("predict", tmp_path / "m.bemf", tmp_path / "f.parquet", "--json").json
    assert [(row["user"], row["item"]) for row in rows] == [(of(u), of(i)) for u, i in pairs[8:16]]
    assert [row["known"] for row in rows] == [True] * 8
    done = works("recommend", tmp_path / "m.bemf", "--ratings", tmp_path / "f.parquet", "--seen", "--json",
                 "--items", tmp_path / "f.parquet")  # fmt: skip
    assert {row["item"] for row in done.json} == {of(n) for n in range(8)}
    rows = works("recommend", tmp_path / "m.bemf", "--titles", tmp_path / "f.parquet", "--json").json
    assert {row["title"] for row in rows} == set("abcdefgh")


def test_a_title_is_shown_to_people(plain: Fitted, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a terminal there is a table, of titles where there are any."""
    (tmp_path / "films.csv").write_text("item,title\n" + "".join(f"{n},Film {n}\n" for n in range(1, N_ITEMS)))
    model = library.load(plain.model)
    monkeypatch.setattr("click.testing._NamedTextIOWrapper.isatty", lambda self: self.name == "<stdout>", raising=False)
    for arguments, answer in (
        (("recommend", "-u", name(1)), model.recommend(name(1), titles=tmp_path / "films.csv")),
        (("similar", "5"), model.similar_items(5, titles=tmp_path / "films.csv")),
    ):
        done = works(arguments[0], plain.model, *arguments[1:], "--titles", tmp_path / "films.csv")
        assert done.text == f"{answer}\n"
        assert "Film " in done.text
    done = works("predict", plain.model, "-", stdin=f"user,item\n{name(1)},1\n")
    assert done.text == f"{model.forecast([(name(1), 1)])}\n"
    assert works("recommend", plain.model, "--json").json, "machines get their own form on a terminal, too"
