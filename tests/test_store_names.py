"""Stores are found where the agent keeps them, and their URLs carry the profile's name."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from state_ledger.stores import DEFAULT_PROFILE, find_stores, name_stores, profile_of


@pytest.mark.parametrize(
    ("paths", "names"),
    [
        (["/h/.hermes/state.db"], ["state"]),
        (["/h/.hermes/state.db", "/h/.hermes/profiles/work/state.db"], ["state", "work"]),
        (["/h/.hermes/profiles/work/archive.db"], ["archive"]),
        (["/a/state.db", "/b/state.db"], ["a-state", "b-state"]),
        (["/a/x/state.db", "/b/x/state.db"], ["a-x-state", "b-x-state"]),
        (["/h/alpha/profiles/work/state.db", "/h/beta/profiles/work/state.db"], ["alpha-work", "beta-work"]),
        (["/a/work.db", "/h/profiles/work/state.db"], ["a-work", "h-work"]),
        (["/a/state.db", "/a/state.db", "/a/b/../state.db"], ["state"]),
        (["/a/my store (1).db"], ["my-store-1"]),
        (["/a/Café.db"], ["Cafe"]),
        (["/a/State.db", "/b/state.db"], ["a-State", "b-state"]),
    ],
)
def test_names(paths, names):
    assert [store.name for store in name_stores(paths)] == names


def test_a_name_that_another_database_has_is_not_taken():
    assert name_stores(["/a/state.db"], taken=["state"])[0].name == "a-state"


PIECES = st.sampled_from(["state", "a", "B", "b", "work", "profiles", "한글", "日本", "x y", "_", "-", ".."])


@given(st.lists(st.lists(PIECES, min_size=1, max_size=5).map(lambda parts: "/" + "/".join(parts) + ".db")))
def test_names_are_unique_and_fit_into_a_url(paths):
    stores = name_stores(paths, taken=["state", "_memory"])
    names = [store.name.lower() for store in stores]
    assert len(set(names)) == len(names)
    assert not {"state", "_memory"} & set(names)
    assert all(re.fullmatch(r"[a-z0-9][a-z0-9_-]*", name) for name in names)
    assert not any(re.search(r"_\d+$", name) for name in names)


def test_profiles():
    assert profile_of("/h/.hermes/profiles/work/state.db") == "work"
    assert profile_of("/h/.hermes/state.db") == DEFAULT_PROFILE


def test_the_agents_own_folder_comes_first(tmp_path, monkeypatch):
    home, named = tmp_path / "home", tmp_path / "elsewhere"
    for folder in (home / ".hermes", named, named / "profiles" / "b", named / "profiles" / "a"):
        folder.mkdir(parents=True)
        (folder / "state.db").touch()
    (named / "profiles" / "empty").mkdir()
    monkeypatch.setattr(Path, "home", lambda: home)
    assert find_stores({}) == [home / ".hermes" / "state.db"]
    assert find_stores({"HERMES_HOME": str(named)}) == [
        named / "state.db",
        named / "profiles" / "a" / "state.db",
        named / "profiles" / "b" / "state.db",
    ]
    assert find_stores({"HERMES_HOME": str(tmp_path / "nowhere")}) == []


async def test_urls_carry_the_profile(small_store, tmp_path, make_datasette):
    home = tmp_path / ".hermes"
    paths = [small_store(folder=folder) for folder in (home, home / "profiles/work", home / "profiles/zoo")]
    other = tmp_path / "unrelated.db"
    from state_ledger.sqlite import sqlite3

    sqlite3.connect(other).execute("CREATE TABLE t (a)").connection.close()
    datasette = await make_datasette([paths[1], other, paths[2], paths[0]])
    listed = (await datasette.client.get("/-/databases.json")).json()
    listed = listed["databases"] if isinstance(listed, dict) else listed
    assert [each["name"] for each in listed] == ["work", "unrelated", "zoo", "state"]
    rows = (await datasette.client.get("/work/sessions.json?_shape=array")).json()
    assert [row["id"] for row in rows] == ["first"]
    assert all(each["is_mutable"] for each in listed)


def test_our_plugins_run_again_as_files_of_a_served_folder():
    from datasette.utils import module_from_path

    from state_ledger.assets import folder

    for name in ("stores", "store_database"):
        module_from_path(str(folder("plugins") / f"{name}.py"), name=f"{name}.py")


async def test_what_is_no_store_is_left_as_it_is(tmp_path, make_datasette):
    from datasette.database import Database

    from state_ledger.sqlite import sqlite3

    path = tmp_path / "plain.db"
    sqlite3.connect(path).execute("CREATE TABLE t (a)").connection.close()
    datasette = await make_datasette(path, memory=True)
    assert type(datasette.get_database("plain")) is Database
    query_only = await datasette.get_database("plain").execute("PRAGMA query_only")
    assert query_only.rows[0][0] == 0
    views = await datasette.get_database("_memory").execute("SELECT count(*) FROM sqlite_temp_master")
    assert views.rows[0][0] == 0
