"""Settings as a user meets them: in a file, at the start, in the documentation."""

from __future__ import annotations

import dataclasses
import re
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from state_ledger.assets import folder
from state_ledger.errors import SettingsError
from state_ledger.plugins import compat
from state_ledger.plugins.stores import registry
from state_ledger.settings import PLUGIN, Settings
from tests import prepared

from .conftest import fetch, free_port

NAMES = [each.name for each in dataclasses.fields(Settings)]
DOCUMENT = Path(__file__).resolve().parents[1] / "docs" / "settings.md"

WRONG: Mapping[str, tuple[Any, str]] = {
    "zone": ("Mars/Olympus", "an IANA time zone such as Europe/Berlin, or empty for the server's"),
    "day_rule": ("yesterday", "one of activity, started, last_seen"),
    "max_cost_per_1000_tokens": (0, "a number above 0"),
    "implausible_from_usd": (-1, "a number above 0"),
    "allowed_hosts": (
        [1],
        "a host name or a list of them, each like books.example.org, *.example.org or books.example.org:8443",
    ),
    "cors": ("yes", "true or false"),
    "snapshot": (1, "true or false"),
    "redact": ("no", "true or false"),
    "prices": (3, "text"),
    "companion": ("on", "true or false"),
    "metrics": ("on", "true or false"),
    "lake": (7, "text"),
    "clickhouse": (True, "text"),
    "postgresql": (["a"], "text"),
    "fleet_refresh_s": (0, "a whole number from 1 to 86400"),
    "fleet_allow": (["ada"], "true, false, or a mapping such as {id: [ada, grace]}, as in Datasette's allow blocks"),
    "budgets": (50, "a list of budgets, each with per and usd or tokens"),
    "query_time_limit_ms": (10, "a whole number from 50 to 600000"),
    "query_memory_mb": (8, "a whole number from 32 to 1000000"),
    "max_limit": (0, "a whole number from 1 to 1000000"),
    "heavy_at_once": (0, "a whole number from 1 to 64"),
    "heavy_waiting": (-1, "a whole number from 0 to 10000"),
    "markdown_columns": (["content"], "a mapping of table names to lists of column names"),
    "markdown_max_characters": (1.5, "a whole number from 100 to 1000000"),
    "markdown_max_brackets": (True, "a whole number from 0 to 5000"),
}
"""For every setting a value it cannot have, and what it could have."""


def plain(value: Any) -> Any:
    """A setting's value as YAML has it."""
    if isinstance(value, Mapping):
        return {key: plain(inner) for key, inner in value.items()}
    return list(value) if isinstance(value, tuple) else value


def plainly(settings: Settings) -> dict[str, Any]:
    return {name: plain(getattr(settings, name)) for name in NAMES}


def refused(*options: str | Path) -> subprocess.CompletedProcess[str]:
    """A real `datasette serve` that is meant to end by itself."""
    return prepared.run("-m", "datasette", "serve", "--port", str(free_port()), *options)


def assert_one_sentence(ended: subprocess.CompletedProcess[str], *parts: str) -> None:
    said = ended.stderr.strip()
    assert ended.returncode not in (0, None), said
    assert "Traceback" not in ended.stdout + ended.stderr
    assert said.startswith("Error: ") and said.count("\n") == 0 and said.endswith(".")
    for part in parts:
        assert part in said


class TestValues:
    def test_nothing_given_is_every_default(self) -> None:
        assert Settings.from_mapping({}) == Settings()

    @pytest.mark.parametrize("name", NAMES)
    def test_a_key_without_a_value_is_the_default(self, name: str) -> None:
        assert Settings.from_mapping({name: None}) == Settings()

    @pytest.mark.parametrize("name", NAMES)
    def test_a_wrong_value_is_named_with_what_is_allowed(self, name: str) -> None:
        value, allowed = WRONG[name]
        with pytest.raises(SettingsError) as raised:
            Settings.from_mapping({name: value})
        assert (raised.value.key, raised.value.value, raised.value.allowed) == (name, value, allowed)
        assert str(raised.value) == f"The setting {name} is {value!r}; it must be {allowed}."

    def test_a_name_or_a_list_of_names_is_taken_as_hosts(self) -> None:
        assert Settings.from_mapping({"allowed_hosts": "Books.Example.org"}).allowed_hosts == ("books.example.org",)

    @pytest.mark.parametrize(
        "entry",
        ["exa mple", "http://x", "https://books.example.org", "a/b", "books.example.org/", "*", "*.", "*.*.example.org",
         "books.*", "books.example.org:", "books.example.org:0", "books.example.org:65536", "books.example.org:http",
         "me@example.org", "a,b", "fe80::1", "*.[fe80::1]", "", " ", "b\u00fccher.example"],
    )  # fmt: skip
    def test_a_host_that_no_request_can_name_is_refused(self, entry: str) -> None:
        for value in (entry, ["books.example.org", entry]):
            with pytest.raises(SettingsError, match=r"books\.example\.org, \*\.example\.org or books"):
                Settings.from_mapping({"allowed_hosts": value})

    @pytest.mark.parametrize(
        "entry",
        ["books.example.org", "*.example.org", "books.example.org:8443", "*.example.org:65535", "books_2", "10.0.0.7:1",
         "[fe80::1]", "[fe80::1]:8001", "books.example.org."],
    )  # fmt: skip
    def test_a_host_that_a_request_can_name_is_taken(self, entry: str) -> None:
        assert Settings.from_mapping({"allowed_hosts": [entry]}).allowed_hosts == (entry,)

    def test_the_zone_of_the_server_stands_in_for_an_empty_one(self, monkeypatch: Any) -> None:
        monkeypatch.setenv("TZ", "Asia/Tokyo")
        assert Settings().zone_name == "Asia/Tokyo"
        assert Settings(zone="Europe/Berlin").zone_name == "Europe/Berlin"

    @pytest.mark.parametrize("name", NAMES)
    def test_a_name_with_any_one_letter_missing_is_taken_for_the_right_one(self, name: str) -> None:
        for place in range(len(name)):
            with pytest.raises(SettingsError, match=f"did you mean {name}"):
                Settings.from_mapping({name[:place] + name[place + 1 :]: 1})

    def test_a_name_like_none_of_ours_gets_no_suggestion(self) -> None:
        with pytest.raises(SettingsError) as raised:
            Settings.from_mapping({"xylophone": 1})
        assert "did you mean" not in str(raised.value)

    @given(
        st.recursive(
            st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
            lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
            max_leaves=6,
        ),
        st.sampled_from(NAMES),
    )
    def test_any_value_is_taken_or_refused_with_a_sentence(self, value: Any, name: str) -> None:
        try:
            settings = Settings.from_mapping({name: value})
        except SettingsError as error:
            assert error.key.partition(".")[0] == name and str(error).endswith(".")
        else:
            assert Settings.from_mapping(plainly(settings)) == settings


class TestStart:
    def test_a_wrong_value_is_named_with_file_and_line(self, small_store: Any, tmp_path: Path) -> None:
        mine = tmp_path / "mine.yaml"
        mine.write_text("title: x\nplugins:\n  state-ledger:\n    zone: UTC\n    day_rule: yesterday\n")
        ended = refused(small_store(), "--metadata", mine)
        assert_one_sentence(
            ended,
            f"{mine}, line 5: The setting day_rule is 'yesterday'",
            "one of activity, started, last_seen",
        )

    def test_a_host_that_cannot_be_one_is_named_with_its_line(self, small_store: Any, tmp_path: Path) -> None:
        mine = tmp_path / "mine.yaml"
        mine.write_text("plugins:\n  state-ledger:\n    cors: false\n    allowed_hosts:\n    - http://x\n")
        ended = refused(small_store(), "--metadata", mine)
        assert_one_sentence(ended, f"{mine}, line 4: The setting allowed_hosts is ['http://x']", "*.example.org")

    def test_a_misspelt_name_is_named_with_the_nearest(self, small_store: Any, tmp_path: Path) -> None:
        mine = tmp_path / "mine.json"
        mine.write_text('{"plugins": {\n  "state-ledger": {\n    "alowed_hosts": ["a"]}}}')
        ended = refused(small_store(), "--metadata", mine)
        assert_one_sentence(ended, f"{mine}, line 3: The setting alowed_hosts", "did you mean allowed_hosts")

    def test_what_is_no_mapping_is_named(self, small_store: Any, tmp_path: Path) -> None:
        mine = tmp_path / "mine.yaml"
        mine.write_text("plugins:\n  state-ledger: [zone]\n")
        ended = refused(small_store(), "--metadata", mine)
        assert_one_sentence(ended, f"{mine}, line 2: The setting state-ledger", "a mapping of setting names")

    def test_the_file_of_a_served_folder_is_named(self, small_store: Any, tmp_path: Path) -> None:
        mine = small_store(folder=tmp_path / "served").with_name("metadata.yml")
        mine.write_text("plugins:\n  state-ledger:\n    max_limit: -1\n")
        assert_one_sentence(refused(mine.parent), f"{mine}, line 3: The setting max_limit is -1")

    @pytest.mark.skipif(not compat.IS_1, reason="0.65 has no configuration file")
    def test_the_configuration_file_is_named(self, small_store: Any, tmp_path: Path) -> None:
        mine, metadata = tmp_path / "mine.yaml", tmp_path / "metadata.yaml"
        metadata.write_text("title: no settings here\n")
        mine.write_text("plugins:\n  state-ledger:\n    cors: maybe\n")
        ended = refused(small_store(), "--config", mine, "--metadata", metadata)
        assert_one_sentence(ended, f"{mine}, line 3: The setting cors is 'maybe'", "true or false")

    @pytest.mark.skipif(not compat.IS_1, reason="0.65 has no such options")
    def test_what_no_file_says_is_named_without_one(self, small_store: Any) -> None:
        ended = refused(small_store(), "--setting", "plugins.state-ledger.max_limit", "0")
        assert_one_sentence(ended, "Error: The setting max_limit is 0; it must be a whole number")

    def test_a_good_file_wins_over_the_defaults(
        self, small_store: Any, tmp_path: Path, served: Callable[..., str]
    ) -> None:
        mine = tmp_path / "mine.yaml"
        mine.write_text("plugins:\n  state-ledger:\n    zone: Pacific/Auckland\n    day_rule: started\n")
        _status, page = fetch(served([small_store()], "--metadata", str(mine)) + "/state")
        assert "Pacific/Auckland" in page

    async def test_an_instance_has_the_settings_of_its_metadata(self, small_store: Any, make_datasette: Any) -> None:
        metadata = {"plugins": {PLUGIN: {"max_limit": 7, "allowed_hosts": ["a.example"]}}}
        settings = registry(await make_datasette(small_store(), metadata=metadata)).settings
        assert settings == Settings(max_limit=7, allowed_hosts=("a.example",))


class TestShipped:
    """Documentation, shipped file and code say the same."""

    def test_the_shipped_file_holds_every_setting_with_its_default(self) -> None:
        shipped = yaml.safe_load(folder("metadata.yaml").read_text(encoding="utf-8"))["plugins"][PLUGIN]
        assert plainly(Settings.from_mapping(shipped)) == plainly(Settings())
        assert set(shipped) == set(NAMES)

    def test_each_shipped_setting_has_a_comment(self) -> None:
        lines = folder("metadata.yaml").read_text(encoding="utf-8").splitlines()
        for name in NAMES:
            (at,) = [index for index, line in enumerate(lines) if re.match(rf"    {name}:", line)]
            assert "#" in lines[at] or lines[at - 1].strip().startswith("#"), name

    def test_the_document_names_every_setting_with_its_default(self) -> None:
        found = re.findall(r"(?m)^### `(\w+)`\n\nDefault: `([^`]*)`$", DOCUMENT.read_text(encoding="utf-8"))
        assert {name: yaml.safe_load(default) for name, default in found} == plainly(Settings())

    def test_each_example_of_the_document_can_be_used(self) -> None:
        sections = re.split(r"(?m)^### ", DOCUMENT.read_text(encoding="utf-8"))[1:]
        for section in sections:
            name = section[1 : section.index("`", 1)]
            (example, *_others) = re.findall(r"(?s)```yaml\n(.*?)```", section)
            written = yaml.safe_load(example)
            assert list(written) == [name]
            changed = Settings.from_mapping(written)
            assert plainly(changed) != plainly(Settings()), f"{name}: the example is the default"

    def test_the_bounds_in_the_document_are_those_of_the_code(self) -> None:
        sections = re.split(r"(?m)^### ", DOCUMENT.read_text(encoding="utf-8"))[1:]
        bounded = 0
        for section in sections:
            name = section[1 : section.index("`", 1)]
            stated = re.search(r"\bfrom (\d+) to (\d+)\b", section)
            if stated:
                bounded += 1
                low, high = int(stated[1]), int(stated[2])
                for inside in (low, high):
                    assert getattr(Settings.from_mapping({name: inside}), name) == inside
                for outside in (low - 1, high + 1):
                    with pytest.raises(SettingsError):
                        Settings.from_mapping({name: outside})
        assert bounded == sum("from" in allowed for _value, allowed in WRONG.values())

    def test_the_error_in_the_document_is_the_one_that_is_given(self) -> None:
        shown = re.search(r"Error: (mine\.yaml, line 4: .*)", DOCUMENT.read_text(encoding="utf-8"))
        error = SettingsError("day_rule", *WRONG["day_rule"], file="mine.yaml", line=4)
        assert shown is not None and shown[1] == str(error)
