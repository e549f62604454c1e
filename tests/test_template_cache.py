"""Compiled templates are kept for the next start, where nobody else can put code."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from state_ledger.plugins.template_cache import private_folder

UNIX = pytest.mark.skipif(os.name != "posix", reason="permissions as on Unix")


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "state-ledger" / "templates"


async def page(make_datasette: Callable[..., Any], store: Path, **options: Any) -> str:
    answer = await (await make_datasette(store, **options)).client.get("/state")
    assert answer.status_code == 200
    return str(answer.text)


def without_nonces(text: str) -> str:
    return "".join(part.partition('"')[2] for part in text.split('nonce="'))


@UNIX
async def test_what_one_start_compiled_the_next_one_reads(
    cache: Path, make_datasette: Callable[..., Any], small_store: Callable[..., Path]
) -> None:
    store = small_store()
    first = await page(make_datasette, store)
    kept = sorted(cache.iterdir())
    assert kept and {file.stat().st_mode & 0o777 for file in kept} == {0o600}
    assert cache.stat().st_mode & 0o777 == 0o700
    before = {file: file.stat().st_mtime_ns for file in kept}
    assert without_nonces(await page(make_datasette, store)) == without_nonces(first)
    assert {file: file.stat().st_mtime_ns for file in sorted(cache.iterdir())} == before


async def test_a_changed_template_is_seen(
    cache: Path, make_datasette: Callable[..., Any], small_store: Callable[..., Path], tmp_path: Path
) -> None:
    store, mine = small_store(), tmp_path / "mine"
    mine.mkdir()
    for text in ("one way", "another way"):
        (mine / "ledger_home.html").write_text(f"<p>{text}</p>")
        assert await page(make_datasette, store, template_dir=str(mine)) == f"<p>{text}</p>"


@pytest.mark.parametrize("rubbish", [b"", b"j2", b"rubbish " * 100], ids=["empty", "short", "long"])
async def test_rubbish_in_the_cache_is_made_anew(
    rubbish: bytes, cache: Path, make_datasette: Callable[..., Any], small_store: Callable[..., Path]
) -> None:
    store = small_store()
    first = await page(make_datasette, store)
    for file in cache.iterdir():
        file.write_bytes(rubbish)
    assert without_nonces(await page(make_datasette, store)) == without_nonces(first)


@UNIX
@pytest.mark.parametrize("which", ["templates", "state-ledger"])
async def test_code_that_others_could_write_is_never_run(
    which: str, cache: Path, make_datasette: Callable[..., Any], small_store: Callable[..., Path]
) -> None:
    assert private_folder() == cache
    open_to_all = cache if which == "templates" else cache.parent
    open_to_all.chmod(0o777)
    assert private_folder() is None
    await page(make_datasette, small_store())
    assert not list(cache.iterdir())


async def test_without_a_folder_pages_are_as_ever(
    cache: Path, make_datasette: Callable[..., Any], small_store: Callable[..., Path]
) -> None:
    cache.parent.parent.mkdir()
    cache.parent.write_text("a file is in the way")
    assert private_folder() is None
    await page(make_datasette, small_store())
