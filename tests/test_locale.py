"""The command under locales that cannot write every character: what is lost is a character, never the answer."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from state_ledger import SessionDB

COMMAND = "from state_ledger.cli import main; main()"
PLAIN_ASCII = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
"""Neither output nor names of files are UTF-8."""
LATIN = {"PYTHONIOENCODING": "latin-1:strict", "PYTHONUTF8": "0"}


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("stores") / "störe.db"
    with SessionDB(path) as db:
        db.create_session("s1", "cli", model="modèle-港")
        db.append_message("s1", "user", "à côté du port 港口 ⚓")
        db.update_token_counts("s1", 500, 50, model="modèle-港", estimated_cost_usd=0.5, api_call_count=1)
    return path


def run(environ: dict[str, str], *words: str | Path) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [sys.executable, "-c", COMMAND, *map(os.fspath, words)],
        capture_output=True, timeout=90, env={**os.environ, **environ},
    )  # fmt: skip


@pytest.mark.parametrize("environ", [PLAIN_ASCII, LATIN], ids=["ascii", "latin-1"])
def test_people_are_told_in_the_characters_there_are(store: Path, environ: dict[str, str]) -> None:
    told = run(environ, "search", "port", store)
    assert told.returncode == 0 and b"Traceback" not in told.stderr, told.stderr.decode()
    assert b"port" in told.stdout and (environ is PLAIN_ASCII or b"\xe0 c\xf4t\xe9 du" in told.stdout)
    asked = run(environ, "query", "cost_per_model", store)
    assert asked.returncode == 0 and b"0.5" in asked.stdout, asked.stderr.decode()


@pytest.mark.parametrize("environ", [PLAIN_ASCII, LATIN], ids=["ascii", "latin-1"])
def test_programs_are_told_in_utf_8(store: Path, environ: dict[str, str]) -> None:
    told = run(environ, "query", "cost_per_model", store, "--format", "csv")
    assert told.returncode == 0 and "modèle-港" in told.stdout.decode("utf-8"), told.stderr.decode()
    assert told.stdout.count(b"\n") == 2


def test_an_error_about_a_name_that_cannot_be_written_is_still_a_sentence(tmp_path: Path) -> None:
    told = run(PLAIN_ASCII, "query", "cost_per_model", tmp_path / "fehlt-港.db")
    assert told.returncode in (1, 2) and b"Error: " in told.stderr and b"Traceback" not in told.stderr


def test_a_page_is_utf_8(store: Path) -> None:
    plain = store.with_name("plain.db")
    plain.write_bytes(store.read_bytes())
    told = run(PLAIN_ASCII, "serve", plain, "--get", "/plain/cost_per_model.csv")
    assert told.returncode == 0 and b"Traceback" not in told.stderr, told.stderr.decode()
