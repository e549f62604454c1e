"""The command finds stores, names those it cannot read, and hands the rest to Datasette."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
from click.testing import CliRunner

from state_ledger import __version__
from state_ledger.cli import main, serving
from state_ledger.sqlite import sqlite3
from tests import prepared
from tests.conftest import fetch, free_port, names_in

HERE = """
import os, sys
import datasette.cli, state_ledger.cli, state_ledger.cli.serving
def become(command, environment):
    os.environ.update(environment)
    datasette.cli.cli(command[3:])
state_ledger.cli.serving._become = become
state_ledger.cli.main()
"""
"""Our command, except that Datasette runs in the process that is here instead of taking its place."""


def _run(*arguments: str | Path, **environ: str) -> subprocess.CompletedProcess[str]:
    return prepared.run("-c", HERE, *arguments, timeout=90, env={**os.environ, **environ})


@pytest.mark.parametrize(
    ("words", "paths", "options"),
    [
        ([], [], []),
        (["a.db", "b.db"], ["a.db", "b.db"], []),
        (["--setting", "x", "y", "a.db"], ["a.db"], ["--setting", "x", "y"]),
        (["-s", "x", "y", "a.db"], ["a.db"], ["-s", "x", "y"]),
        (["-m", "meta.yaml", "a.db", "--cors"], ["a.db"], ["-m", "meta.yaml", "--cors"]),
        (["--metadata=meta.yaml", "a.db"], ["a.db"], ["--metadata=meta.yaml"]),
        (["--memory", "a.db", "--root", "b.db"], ["a.db", "b.db"], ["--memory", "--root"]),
        (["--static", "mount:folder", "a.db"], ["a.db"], ["--static", "mount:folder"]),
        (["-o", "a.db", "--open"], ["a.db"], []),
        (["a.db", "--setting", "x"], ["a.db"], ["--setting", "x"]),
    ],
)
def test_stores_are_told_from_options(words, paths, options):
    found = serving.split_arguments(words)
    assert [str(path) for path in found.paths] == paths
    assert found.options == options


def test_every_option_of_datasette_takes_as_many_words_as_we_think():
    from datasette.cli import cli as datasette

    for parameter in datasette.commands["serve"].params:
        for name in getattr(parameter, "opts", []) if parameter.param_type_name == "option" else []:
            words = 0 if parameter.is_flag else parameter.nargs
            ours = 0 if name in serving.FLAGS or name in ("-o", "--open") else 2 if name in serving.PAIRS else 1
            assert ours == words, name


def test_version():
    assert _run("--version").stdout.strip().endswith(__version__)


def test_a_store_that_is_named_is_served(small_store):
    words = ("serve", small_store(), "--get", "/state/sessions.json?_shape=array")
    answer = prepared.run(*prepared.COMMAND, *words, timeout=90)
    assert answer.returncode == 0, answer.stderr
    assert json.loads(answer.stdout)[0]["id"] == "first"


def test_stores_of_the_user_are_found(small_store, tmp_path):
    home = tmp_path / "hermes"
    for folder in (home, home / "profiles" / "work"):
        small_store(folder=folder)
    answer = _run("serve", "--get", "/-/databases.json", HERMES_HOME=str(home))
    listed = json.loads(answer.stdout)
    listed = listed["databases"] if isinstance(listed, dict) else listed
    assert [each["name"] for each in listed] == ["state", "work"]


def test_without_any_store_there_is_a_demo_and_it_says_so(tmp_path):
    environ = {"HERMES_HOME": str(tmp_path / "nowhere"), "XDG_CACHE_HOME": str(tmp_path / "cache")}
    answer = _run("serve", "--get", "/demo/sessions.json?_shape=array&_size=1", **environ)
    assert answer.returncode == 0, answer.stderr
    sentence, _, page = answer.stdout.partition("\n")
    (made,) = (tmp_path / "cache").rglob("demo.db")
    assert "demo store" in sentence and str(made) in sentence
    assert json.loads(page)
    recent = "SELECT count(*) FROM sessions WHERE started_at BETWEEN ? AND ?"
    now = time.time()
    assert sqlite3.connect(made).execute(recent, [now - 8 * 86400, now]).fetchone()[0] > 0
    inode = made.stat().st_ino
    _run("serve", "--get", "/-/versions.json", **environ)
    assert made.stat().st_ino == inode
    yesterday = made.parent.rename(made.parent.with_name("2020-01-01"))
    _run("serve", "--get", "/-/versions.json", **environ)
    assert made.exists() and not yesterday.exists()


def test_a_store_that_cannot_be_read_is_left_out_with_its_remedy(small_store, tmp_path):
    (tmp_path / "text.db").write_text("no database" * 100)
    answer = _run("serve", tmp_path / "text.db", small_store(), "--get", "/-/databases.json")
    assert answer.returncode == 0
    assert "text.db is not a SQLite database" in answer.stderr
    assert '"text"' not in answer.stdout and '"state"' in answer.stdout


@pytest.mark.parametrize("make", [lambda path: None, lambda path: path.write_bytes(b""), Path.mkdir])
def test_nothing_to_serve_is_an_error_and_a_sentence(tmp_path, make):
    path = tmp_path / "state.db"
    make(path)
    answer = _run("serve", path, "--get", "/")
    assert answer.returncode == 1
    assert answer.stderr.startswith("Error: ") and "Traceback" not in answer.stderr


def test_a_file_given_twice_is_served_once(small_store, tmp_path):
    path = small_store()
    (tmp_path / "link.db").symlink_to(path)
    answer = _run("serve", path, tmp_path / "link.db", path, "--get", "/-/databases.json")
    assert answer.stdout.count('"route"') == 1, answer.stderr


def test_a_snapshot_is_shown_instead_of_the_store(small_store, tmp_path):
    path = small_store(folder=tmp_path / "profiles" / "work", journal="wal")
    before = names_in(path.parent)
    cache = tmp_path / "cache"
    answer = _run("serve", path, "--snapshot", "--get", "/-/databases.json", XDG_CACHE_HOME=str(cache))
    assert answer.returncode == 0, answer.stderr
    listed = json.loads(answer.stdout)
    listed = listed["databases"] if isinstance(listed, dict) else listed
    assert listed[0]["name"] == "work" and listed[0]["path"].startswith(str(cache))
    assert names_in(path.parent) == before
    assert not [file for file in cache.rglob("*") if file.is_file()]


def test_another_users_store_is_shown_by_a_snapshot(small_store, open_folder, as_nobody):
    path = small_store(journal="wal", folder=open_folder)
    open_folder.chmod(0o777)
    # Python itself may be closed to the other user, so Datasette cannot take the place of the process.
    words = ("serve", path, "--get", "/state/sessions.json?_shape=array")
    refused = as_nobody(HERE, *words)
    assert refused.returncode == 1 and "--snapshot" in refused.stderr
    shown = as_nobody(HERE, *words, "--snapshot")
    assert json.loads(shown.stdout)[0]["id"] == "first", shown.stderr
    assert names_in(open_folder) == ["state.db"]


def test_the_address_is_printed_and_answers_and_ctrl_c_ends_it(small_store):
    port = free_port()
    arguments = [sys.executable, *prepared.COMMAND, "serve", str(small_store()), "--no-browser", "--port", str(port)]
    process = subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert f"http://127.0.0.1:{port}/" in process.stdout.readline()
    deadline = time.monotonic() + 30
    status = 0
    while status != 200 and time.monotonic() < deadline:
        try:
            status, _ = fetch(f"http://127.0.0.1:{port}/-/versions.json")
        except OSError:
            time.sleep(0.1)
    assert status == 200
    process.send_signal(2)
    _, errors = process.communicate(timeout=20)
    assert "Traceback" not in errors
    assert process.returncode in (0, 1, -2, 130)  # as Datasette ends: 0.65 with 0, 1.0 with click's 1


def test_the_usual_port_is_left_to_who_has_it(small_store, monkeypatch):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        monkeypatch.setattr(serving, "PORT", taken.getsockname()[1])
        started: list[list[str]] = []
        monkeypatch.setattr(serving, "_become", lambda command, environment: started.append(command))
        result = CliRunner().invoke(main, ["serve", str(small_store()), "--no-browser"])
    port = started[0][started[0].index("--port") + 1]
    assert int(port) not in (0, taken_port := serving.PORT), taken_port
    assert f":{port}/" in result.output


@pytest.mark.parametrize(
    ("arguments", "address"),
    [
        (["--port", "9"], "http://127.0.0.1:9/"),
        (["--port", "9", "--host", "0.0.0.0"], "http://127.0.0.1:9/"),
        (["--port", "9", "--host", "::1"], "http://[::1]:9/"),
        (["--port", "9", "--setting", "base_url", "/books/"], "http://127.0.0.1:9/books/"),
        (["--port", "9", "--ssl-certfile", "c", "--ssl-keyfile", "k"], "https://127.0.0.1:9/"),
    ],
)
def test_the_address_is_the_one_that_answers(small_store, monkeypatch, arguments, address):
    opened: list[str] = []
    monkeypatch.setattr(serving, "_become", lambda command, environment: None)
    monkeypatch.setattr(serving, "_open_browser_later", lambda host, port, address: opened.append(address))
    result = CliRunner().invoke(main, ["serve", str(small_store()), *arguments])
    assert address in result.output and opened == [address]


def test_the_browser_is_opened_when_the_address_answers(monkeypatch):
    opened: list[str] = []
    monkeypatch.setattr(serving.webbrowser, "open", opened.append)
    port = free_port()
    serving.open_when_answering("127.0.0.1", str(port), "nobody listens", patience_s=0.3)
    assert opened == []
    with socket.socket() as server:
        server.bind(("127.0.0.1", port))
        server.listen()
        serving.open_when_answering("127.0.0.1", str(port), "http://here/", patience_s=5)
    assert opened == ["http://here/"]


def test_demo_writes_a_store_once(tmp_path):
    path = tmp_path / "demo.db"
    options = ["--seed", "3", "--sessions", "100", "--days", "30", "--messages-per-session", "5"]
    made = _run("demo", path, *options, "--until", "2026-01-31")
    assert made.returncode == 0, made.stderr
    assert "sessions" in made.stdout and str(path) in made.stdout
    days = "SELECT DISTINCT date(started_at, 'unixepoch') FROM sessions WHERE started_at < 1e10 ORDER BY 1"
    found = [row[0] for row in sqlite3.connect(path).execute(days)]
    assert found[-1] <= "2026-01-31" and found[-5] > "2026-01-01"
    again = _run("demo", path)
    assert again.returncode == 1 and "exists already" in again.stderr
