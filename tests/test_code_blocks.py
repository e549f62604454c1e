"""Every block of code in README and docs does what it is said to do.

Commands run against a small store, in a folder of their own for each block, as the user whose home that folder is.
What a page calls `ID`, a folder on another disk or a bill is there under that name. A pipe's first part is run.
"""

from __future__ import annotations

import json
import os
import re
import shlex
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import click
import pytest
import yaml
from click.testing import CliRunner

from state_ledger import SessionDB
from state_ledger.backup import back_up
from state_ledger.cli import main, serving
from state_ledger.connection import open_for_reading
from state_ledger.plugins import compat
from state_ledger.prices import load
from state_ledger.settings import Settings

CHECKOUT = Path(__file__).resolve().parents[1]
PAGES = [CHECKOUT / "README.md", CHECKOUT / "CONTRIBUTING.md", *sorted((CHECKOUT / "docs").glob("*.md"))]
SESSIONS = ("20260301_101500_ab12cd", "cron_digest_20260301_070000", "20260601_120000_ab12cd")
NOT_RUN = {
    "python3 -m venv": "tests/test_install_matrix.py and CI make environments",
    "pip install": "installs from the package index",
    "rsync": "goes to another machine",
    "sqlite3_rsync": "goes to another machine",
    "server {": "is a file of nginx",
    "import pandas": "tests/test_notebooks.py runs what this shows, against a server",
    "async with Client(": "tests/test_mcp.py asks that server",
    "mcp_servers:": "is a file of another program",
    "dbs:": "is a file of Litestream",
    "*/15 * * * *": "is a line of a crontab",
    "CREATE ROLE": "is for a server of PostgreSQL",
    "lake.json ": "shows files, and is no code",
}
"""Blocks that begin so, or lines, and why they are not run here."""
ELSEWHERE = ("s3://", "clickhouse://", "postgresql://")
"""How places on other machines begin."""
FIND = ("check", "budget", "reconcile", "prices")
"""Verbs that end with 1 where they find something."""
NOT_HERE = ("Parquet needs pyarrow", "Not ended by a sweep: ")
"""What a verb rightly says where an extra is not installed, or of a store that never was in that state."""


class Block(NamedTuple):
    """A block of code: where it is, what it is said to be in, what it says."""

    page: str
    number: int
    language: str
    text: str


def blocks() -> Iterator[Block]:
    for page in PAGES:
        found = re.findall(r"^```(\w*)\n(.*?)^```", page.read_text("utf-8"), re.MULTILINE | re.DOTALL)
        for number, (language, text) in enumerate(found, 1):
            yield Block(page.name, number, language, text)


def of(*languages: str) -> Any:
    chosen = [each for each in blocks() if each.language in languages and why_not(each.text) is None]
    return pytest.mark.parametrize("block", chosen, ids=lambda block: f"{block.page}-{block.number}")


def why_not(text: str) -> str | None:
    if "\n" not in text and any(scheme in text for scheme in ELSEWHERE):
        return "goes to another machine"
    return next((why for start, why in NOT_RUN.items() if text.startswith(start)), None)


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("template") / "state.db"
    with SessionDB(path) as db:
        for name in SESSIONS:
            db.create_session(name, "cron" if name.startswith("cron") else "telegram", model="claude-sonnet-4-5")
            for number in range(3):
                db.append_message(name, "user", f"deploy the harbour, then connection refused {number}")
            db.update_token_counts(
                name, 500, 50, model="claude-sonnet-4-5", billing_provider="openrouter", estimated_cost_usd=0.01,
                api_call_count=2,
            )  # fmt: skip
            db.end_session(name, "done")
    return path


@pytest.fixture
def home(template: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder to work in that is the user's home too, with everything that the documents speak of."""
    for place in ("state.db", "a.db", "b.db", ".hermes/state.db", "srv/hermes/state.db", "work/state.db",
                  "home/state.db", "PATH/state.db"):  # fmt: skip
        (tmp_path / place).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / place).write_bytes(template.read_bytes())
    for folder in ("backups", "disk/backups", "archive"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "november.csv").write_text("date,model,cost\n2026-11-03,claude-sonnet-4-5,0.02\n", "utf-8")
    bill = [{"date": "2026-11-03", "model": "claude-sonnet-4-5", "cost": 0.02}]
    (tmp_path / "costs.json").write_text(json.dumps(bill), "utf-8")
    (tmp_path / "mine.yaml").write_text("plugins: {state-ledger: {budgets: [{per: month, usd: 50}]}}\n", "utf-8")
    (tmp_path / "serving.yaml").write_text("title: Books\n", "utf-8")
    (tmp_path / "my-prices.yaml").write_text("prices: [{model: x, input: 1, output: 2}]\n", "utf-8")
    for name in ("HERMES_HOME", "XDG_CACHE_HOME", "XDG_DATA_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def commands(block: Block) -> Iterator[str]:
    for line in block.text.splitlines():
        line = line.removeprefix("$ ").split("  #")[0].strip()
        if line and why_not(line) is None:
            yield line


def words_of(line: str, home: Path) -> list[str]:
    """The words of a command with its variables set and its folders put below the home, up to a pipe or a file."""
    for written, here in (("/mnt/", f"{home}/"), ("/srv/", f"{home}/srv/"), (" ID", f" {SESSIONS[0]}")):
        line = line.replace(written, here)
    words: list[str] = []
    for word in shlex.split(line):
        if word in ("|", ">"):
            break
        name, equals, value = word.partition("=")
        if equals and name.isupper() and not words:
            os.environ[name] = value
        else:
            words.append(word.replace("~/", f"{home}/") if word.startswith("~/") else word)
    return words


@of("sh", "console")
def test_commands_run(block: Block, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HERMES_HOME", str(home / ".hermes"))  # set anew after each test, whatever a line sets
    started: list[list[str]] = []
    monkeypatch.setattr(serving, "_become", lambda command, _environment: started.append(command[3:]))
    for line in commands(block):
        prepare(line, home)
        words = words_of(line, home)
        if words[:2] == ["datasette", "serve"]:
            started.append(words[1:])
            continue
        assert words[0] == "state-ledger", f"{block.page}: nobody runs {line!r}"
        verb = main.get_command(None, words[1])  # type: ignore[arg-type]
        if isinstance(verb, click.Group):
            verb = verb.get_command(None, words[2])  # type: ignore[arg-type]
        assert verb is not None
        if words[1] == "check" and "--watch" in words:
            continue  # goes on for ever; tests/test_watch.py looks at it
        if any("--yes" in each.opts for each in verb.params) and not {"--yes", "--dry-run"} & set(words):
            words.append("--yes")
        done = CliRunner().invoke(main, [*words[1:], *(["--no-browser"] if words[1] == "serve" else [])])
        assert done.exception is None or isinstance(done.exception, SystemExit), (line, done.exc_info)
        well = (0, 1) if words[1] in FIND or any(each in done.output for each in NOT_HERE) else (0,)
        assert done.exit_code in well, (line, done.output)
    from datasette.cli import cli as datasette_command

    for arguments in started:
        if "--config" in arguments and not compat.IS_1:
            continue
        answer = CliRunner().invoke(datasette_command, [*arguments, "--get", "/-/versions.json"])
        assert answer.exit_code == 0 and "sqlite" in answer.output, (arguments, answer.output)
        assert all(not path.endswith(".db") or Path(path).is_file() for path in arguments)


def prepare(line: str, home: Path) -> None:
    """What an earlier day would have left: an export, a backup under the name that the line has."""
    if "import" in line:
        for name, form in (("all.jsonl", "jsonl"), ("more.json", "json")):
            words = ["export", "srv/hermes/state.db", "--all", "--format", form, "--output", name, "--force"]
            assert CliRunner().invoke(main, words).exit_code == 0
        (home / "new.db").unlink(missing_ok=True)
    if "restore" in line:
        named, target = map(Path, words_of(line, home)[2:4])
        back_up(home / "state.db", named.parent).path.rename(named)
        target.unlink(missing_ok=True)
    if "srv/lake" in line and not (home / "srv/lake").exists():
        pytest.importorskip("pyarrow", reason="a lake needs the extra lake")
        assert CliRunner().invoke(main, ["lake", "push", "--to", "srv/lake"]).exit_code == 0
    if "repair" in line:
        (home / "state-new.db").unlink(missing_ok=True)
    if "demo " in line:
        (home / "big.db").unlink(missing_ok=True)


@of("python")
def test_python_runs(block: Block, home: Path, template: Path) -> None:
    if block.page == "notebooks.md":
        pytest.skip("tests/test_notebooks.py runs it against a server")
    names: dict[str, Any] = {}
    if 'SessionDB("state.db")' in block.text:
        (home / "state.db").unlink()
    if 'hit["' in block.text:
        names["hit"] = {"snippet": "the >>>harbour<<< at night", "matches": [[4, 17]]}
    exec(compile(block.text, f"{block.page}-{block.number}", "exec"), names)


@of("sql")
def test_sql_runs(block: Block, template: Path) -> None:
    load()
    with closing(open_for_reading(template)) as connection:
        connection.execute(block.text).fetchall()


@of("yaml")
def test_yaml_is_taken(block: Block, home: Path) -> None:
    """Our own settings, price tables, and permissions, as Datasette or we read them."""
    given = yaml.safe_load(block.text)
    assert isinstance(given, dict) and given
    ours = given.get("plugins", {}).get("state-ledger")
    if ours is not None:
        Settings.from_mapping(ours)
    if isinstance(given.get("prices"), list):
        (home / "prices.yaml").write_text(block.text, "utf-8")
        done = CliRunner().invoke(main, ["prices", "llama-3", "--provider", "custom", "--prices", "prices.yaml"])
        assert done.exit_code == 0 and "Traceback" not in done.output, done.output


@of("json")
def test_json_is_json(block: Block) -> None:
    assert json.loads(block.text)


def test_every_block_is_run_or_says_why_not() -> None:
    """A block in a language that nothing above runs would be a block that may be wrong."""
    run = {"sh", "console", "python", "sql", "yaml", "json"}
    left = [each for each in blocks() if each.language not in run and why_not(each.text) is None]
    assert [each for each in left if not (each.language == "text" and each.text.startswith("Error: "))] == []


def test_errors_in_the_documents_are_those_that_are_given(home: Path) -> None:
    text = "prices:\n" + "  # a\n" * 3 + "  - model: m\n    input: 2,40\n    output: 1\n"
    (home / "prices.yaml").write_text(text, "utf-8")
    told = CliRunner().invoke(main, ["prices", "m", "--prices", "prices.yaml"]).output
    [written] = [each.text.strip() for each in blocks() if each.page == "prices.md" and each.language == "text"]
    assert told.strip().replace(str(home) + "/", "") == written
