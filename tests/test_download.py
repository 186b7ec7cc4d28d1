"""Downloads: whatever goes wrong, the file is right or not there, and what has come is not asked for again."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bemf import DataError
from bemf.datasets import download
from bemf.datasets.download import fetch
from site_of_one_file import Site, served

CONTENT = bytes(n * n % 251 for n in range(5000))


@pytest.fixture(scope="module")
def one_site() -> Iterator[Site]:
    with pytest.MonkeyPatch.context() as patch, served() as site:
        patch.setenv("no_proxy", "*")
        yield site


@pytest.fixture
def site(one_site: Site) -> Site:
    return one_site.reset(CONTENT)


@pytest.fixture
def target(tmp_path: Path) -> Path:
    return tmp_path / "cache" / "file.zip"


def part_of(target: Path) -> Path:
    return target.with_name("file.zip.part")


def begun(target: Path, content: bytes) -> Path:
    """A target of which some has come before."""
    target.parent.mkdir(parents=True)
    part_of(target).write_bytes(content)
    return target


def get(site: Site, target: Path, content: bytes = CONTENT) -> list[tuple[int, int | None]]:
    """Fetches the file, which must be as said; returns what was told meanwhile."""

    def check(path: Path) -> None:
        if path.read_bytes() != content:
            raise DataError("it is another one")

    told: list[tuple[int, int | None]] = []
    fetch(site.address, target, check, lambda *how_far: told.append(how_far))
    assert target.read_bytes() == content
    assert [path.name for path in target.parent.iterdir()] == [target.name]
    return told


# -- going on where it broke off -------------------------------------------------------------------------


def test_a_file_comes_whole(site: Site, target: Path) -> None:
    assert get(site, target)[-1] == (5000, 5000)
    assert site.asked == [None]


def test_progress_is_told(site: Site, target: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(download, "TOLD_EVERY", 0)
    monkeypatch.setattr(download, "CHUNK", 1000)
    assert get(site, target) == [(n, 5000) for n in (0, 1000, 2000, 3000, 4000, 5000, 5000)]


def test_a_server_need_not_say_how_long_a_file_is(site: Site, target: Path) -> None:
    site.length = False
    assert get(site, target)[-1] == (5000, None)
    part_of(target).write_bytes(CONTENT[:7])
    target.unlink()
    assert get(site, target)[-1] == (5000, None)
    assert site.asked == [None, 7]


@given(st.integers(1, 5000))
def test_what_is_here_is_not_asked_for_again(one_site: Site, tmp_path_factory: Any, n: int) -> None:
    site, target = one_site.reset(CONTENT), tmp_path_factory.mktemp("download") / "cache" / "file.zip"
    get(site, begun(target, CONTENT[:n]))
    assert site.asked == [n]


@given(st.lists(st.integers(0, 3000), max_size=6))
def test_broken_connections_are_made_again_while_they_bring_something(
    one_site: Site, tmp_path_factory: Any, breaks: list[int]
) -> None:
    site, target = one_site.reset(CONTENT, breaks=list(breaks)), tmp_path_factory.mktemp("download") / "file.zip"
    arrived, wanted = 0, [None]
    for n in breaks:
        arrived += n
        if n == 0 or arrived >= len(CONTENT):
            break
        wanted.append(arrived)  # type: ignore[arg-type]
    if arrived < len(CONTENT) and 0 in breaks:
        with pytest.raises(DataError, match=f"ended after {arrived:,} of 5,000 bytes, which are kept"):
            get(site, target)
        assert part_of(target).read_bytes() == CONTENT[:arrived]
    else:
        get(site, target)
    assert site.asked == wanted


def test_a_silent_server_is_left_and_asked_again(site: Site, target: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(download, "TIMEOUT", 0.2)
    monkeypatch.setattr(download, "CHUNK", 100)
    site.reset(CONTENT, breaks=[1000], stalls=True)
    get(site, target)
    assert site.asked == [None, 1000]


def test_a_server_that_knows_no_parts_sends_all_again(site: Site, target: Path) -> None:
    site.ranges = False
    get(site, begun(target, CONTENT[:3000]))
    assert site.asked == [3000]


def test_a_server_may_send_more_than_was_asked_for(site: Site, target: Path) -> None:
    begun(target, CONTENT[:3000])
    site.said = "bytes 1000-4999/5000"
    site.content = CONTENT[:1000] + CONTENT[:2000] + CONTENT[1000:]  # of which it sends what follows 3000
    get(site, target)
    assert site.asked == [3000]


@pytest.mark.parametrize("said", ["bytes 3001-4999/5000", "bytes", "lines 3000-4999/5000", "bytes 3000-4999"])
def test_another_part_is_not_taken(said: str, site: Site, target: Path) -> None:
    begun(target, CONTENT[:3000])
    site.said = said
    with pytest.raises(DataError, match=f"another part, '{said}', than that from byte 3,000"):
        get(site, target)
    assert part_of(target).read_bytes() == CONTENT[:3000]


# -- only the right file ---------------------------------------------------------------------------------


def test_a_wrong_file_is_refused(site: Site, target: Path) -> None:
    with pytest.raises(DataError) as error:
        get(site, target, b"another file")
    for words in (site.address, "it is another one", "not kept", str(target)):
        assert words in str(error.value)
    assert not target.exists()
    assert part_of(target).read_bytes() == b""
    assert site.asked == [None]


@pytest.mark.parametrize("old", [b"an older version", b"x" * 5000, b"x" * 9000])
def test_a_part_of_something_else_is_thrown_away(old: bytes, site: Site, target: Path) -> None:
    get(site, begun(target, old))
    assert site.asked == [len(old), None]


def test_only_one_of_many_downloads(site: Site, target: Path) -> None:
    site.pause = 0.02
    with ThreadPoolExecutor(4) as pool:
        for done in [pool.submit(get, site, target) for _ in range(4)]:
            done.result(timeout=20)
    assert site.asked == [None]


# -- what goes wrong --------------------------------------------------------------------------------------


@pytest.mark.parametrize("status", [403, 404, 500, 503])
@pytest.mark.parametrize("n", [0, 3000])
def test_a_server_s_refusal_is_said(status: int, n: int, site: Site, target: Path) -> None:
    begun(target, CONTENT[:n])
    site.status = status
    with pytest.raises(DataError) as error:
        get(site, target)
    for words in (site.address, f"answers {status}", str(target)):
        assert words in str(error.value)
    assert part_of(target).read_bytes() == CONTENT[:n]
    assert len(site.asked) == 1


def test_a_server_that_has_no_parts_at_all(site: Site, target: Path) -> None:
    site.status = 416
    with pytest.raises(DataError, match="answers 416"):
        get(site, target)


@pytest.mark.parametrize("address", ["http://127.0.0.1:9/file.zip", "http://nowhere.invalid/file.zip"])
def test_without_a_network_it_is_said_where_to_put_the_file(address: str, target: Path, site: Site) -> None:
    begun(target, CONTENT[:3000])
    with pytest.raises(DataError) as error:
        get(Site(address=address), target)
    for words in (address, "cannot be downloaded", f"put it at {target}"):
        assert words in str(error.value)
    assert part_of(target).read_bytes() == CONTENT[:3000]
    get(site, target)


@pytest.mark.parametrize("folder", ["file", "file/folder"])
def test_a_folder_that_cannot_be_made_is_said(folder: str, site: Site, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a folder")
    with pytest.raises(DataError, match=r"cannot be written.*set BEMF_CACHE"):
        get(site, tmp_path / folder / "file.zip")


def test_an_interrupted_download_goes_on(site: Site, target: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(download, "TOLD_EVERY", 0)
    monkeypatch.setattr(download, "CHUNK", 1000)

    def interrupt(n_bytes: int, _: int | None) -> None:
        if n_bytes == 2000:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fetch(site.address, target, lambda _: None, interrupt)
    assert part_of(target).read_bytes() == CONTENT[:2000]
    get(site, target)
    assert site.asked == [None, 2000]


FETCH = """
import json, resource, sys
from pathlib import Path
from bemf import DataError
from bemf.datasets.download import fetch

address, target, limit = json.loads(sys.argv[1])
if limit:
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
try:
    fetch(address, Path(target), lambda _: None, lambda *_: None)
except DataError as error:
    print(error)
"""


def in_another_process(site: Site, target: Path, limit: int = 0) -> subprocess.Popen[str]:
    asked = json.dumps([site.address, str(target), limit])
    return subprocess.Popen([sys.executable, "-c", FETCH, asked], stdout=subprocess.PIPE, text=True)


def test_a_full_disk_is_said_and_what_has_come_is_kept(site: Site, target: Path) -> None:
    """The system refuses to write more than 3,000 bytes."""
    said, _ = in_another_process(site, target, 3000).communicate(timeout=20)
    for words in (str(part_of(target)), "cannot be written", "make room", "3,000 bytes are kept"):
        assert words in said
    assert part_of(target).read_bytes() == CONTENT[:3000]
    get(site, target)
    assert site.asked == [None, 3000]


def test_a_killed_download_goes_on(site: Site, target: Path) -> None:
    content = CONTENT * 100
    site.reset(content, pause=0.002)
    with in_another_process(site, target) as process:
        deadline = time.monotonic() + 20
        while not part_of(target).exists() or part_of(target).stat().st_size < 100_000:
            assert time.monotonic() < deadline
            time.sleep(0.005)
        assert not target.exists()
        os.kill(process.pid, signal.SIGKILL)
    n = part_of(target).stat().st_size
    assert 100_000 <= n < len(content)
    site.pause = 0
    get(site, target, content)
    assert site.asked == [None, n]
