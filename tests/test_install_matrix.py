"""Fresh environments: every Python that is here, wheel and source, lowest and highest versions, both SQLites.

Each takes a minute, so they are made only with `STATE_LEDGER_STRESS=1`; `.ci/run` itself makes two.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.conftest import STRESS

CHECKOUT = Path(__file__).resolve().parents[1]


def pythons() -> Iterator[str]:
    """The supported Pythons of this machine by version, from the path and from pyenv."""
    for minor in range(10, 14):
        name = f"python3.{minor}"
        places = [shutil.which(name), *sorted((Path.home() / ".pyenv" / "versions").glob(f"3.{minor}.*/bin/{name}"))]
        for place in filter(None, places):
            asked = subprocess.run([place, "-c", "import ensurepip, venv, sqlite3"], capture_output=True)
            if asked.returncode == 0:
                yield str(place)
                break


def dependencies(exact: bool) -> str:
    """What the project asks for; exact: its lowest versions and no others, as a file of constraints."""
    text = (CHECKOUT / "pyproject.toml").read_text(encoding="utf-8")
    listed = re.findall(r'^    "([^"]+>=[^"]+)",$', text.split("[project.optional-dependencies]")[0], re.MULTILINE)
    assert len(listed) > 5
    return "\n".join(each.replace(">=", "==") if exact else each for each in listed)


class Case(NamedTuple):
    """python: its path; artefact: `wheel` or `sdist`; lowest: whether of all it asks for; own_sqlite: no pysqlite3."""

    python: str
    artefact: str
    lowest: bool = False
    own_sqlite: bool = False


def cases() -> list[Case]:
    """Each Python at both ends of the versions; source and Python's own SQLite, which often loads no extensions, once
    on the oldest and the newest of them."""
    found = list(pythons()) if STRESS else [sys.executable]
    ends = {found[0], found[-1]}
    made = [Case(each, "wheel", lowest) for each in found for lowest in (True, False)]
    return [*made, *(Case(each, "sdist") for each in sorted(ends)),
            *(Case(each, "wheel", own_sqlite=True) for each in sorted(ends))]  # fmt: skip


@pytest.fixture(scope="module")
def artefacts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("dist")
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-d", str(target)], cwd=CHECKOUT, check=True, capture_output=True
    )
    return target


@pytest.mark.skipif(not STRESS, reason="takes minutes; STATE_LEDGER_STRESS=1 runs it")
@pytest.mark.parametrize("case", cases(), ids=lambda case: f"{Path(case.python).name}-{'-'.join(map(str, case[1:]))}")
def test_a_fresh_environment_serves_a_store(case: Case, artefacts: Path, tmp_path: Path) -> None:
    subprocess.run([case.python, "-m", "venv", str(tmp_path / "venv")], check=True, capture_output=True)
    scripts = tmp_path / "venv" / ("Scripts" if os.name == "nt" else "bin")
    ledger = scripts / "state-ledger"
    file = next(artefacts.glob("*.whl" if case.artefact == "wheel" else "*.tar.gz"))
    constraints = tmp_path / "constraints.txt"
    constraints.write_text(dependencies(case.lowest), encoding="utf-8")

    def run(*words: str | Path, patience_s: float = 300) -> str:
        done = subprocess.run([*map(str, words)], cwd=tmp_path, capture_output=True, text=True, timeout=patience_s)
        # The check ends with 1 where it finds something to say.
        well = (0, 1) if words[1] == "check" and words[0] == ledger else (0,)
        assert done.returncode in well and "Traceback" not in done.stderr, done.stdout + done.stderr
        return done.stdout

    run(scripts / "python", "-m", "pip", "install", "--quiet", "--constraint", constraints, file, patience_s=900)
    run(scripts / "python", "-m", "pip", "check")
    if case.own_sqlite:
        run(scripts / "python", "-m", "pip", "uninstall", "--quiet", "--yes", "pysqlite3")
    run(ledger, "demo", "demo.db")
    total = float(re.findall(r"\$([\d,.]+)", run(ledger, "backup", "demo.db", "--to", "kept"))[0].replace(",", ""))
    rows = json.loads(run(scripts / "datasette", "serve", "demo.db", "--get", "/demo/cost_per_model.json?_shape=array"))
    assert total == pytest.approx(sum(row["cost_usd"] or 0 for row in rows), abs=0.01) and total > 1
    for path in ("/demo", "/demo/-/cost", "/demo/-/search?q=harbour", "/demo/-/ops", "/-/ledger/all"):
        assert "<title>" in run(ledger, "serve", "demo.db", "--get", path)
    run(ledger, "export", "demo.db", "--all", "--output", "all.jsonl")
    run(ledger, "import", "all.jsonl", "again.db", "--yes")
    for verb in ("status", "sizes", "profiles", "check"):
        run(ledger, verb, "again.db")


def test_the_lowest_versions_are_those_that_are_asked_for() -> None:
    """What the matrix installs is read from the project file, markers included."""
    lowest = dependencies(exact=True).splitlines()
    assert any(line.startswith("datasette==0.65.5") for line in lowest) and not any(">=" in line for line in lowest)
    assert any("pysqlite3==" in line and "sys_platform" in line for line in lowest)
