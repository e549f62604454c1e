"""What is a secret is replaced, what is none stays."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from state_ledger.redact import Redactor, Report, placeholder, redact
from tests.secrets_corpus import FALSE, TRUE


def test_the_corpus_is_large_enough() -> None:
    assert len(TRUE) >= 80 and len(FALSE) >= 80


@pytest.mark.parametrize(("kind", "around", "secret"), TRUE, ids=[f"{n}-{kind}" for n, (kind, _, _) in enumerate(TRUE)])
def test_a_secret_is_replaced_by_its_kind_and_nothing_else_is(kind: str, around: str, secret: str) -> None:
    text = around.format(secret)
    redacted, report = redact(text)
    assert secret not in redacted
    assert redacted == around.format(placeholder(kind))
    assert report.as_dict() == {kind: 1}


@pytest.mark.parametrize("text", FALSE)
def test_what_is_no_secret_stays(text: str) -> None:
    redacted, report = redact(text)
    assert redacted == text
    assert report.total == 0


@pytest.mark.parametrize(("kind", "around", "secret"), TRUE, ids=[f"{n}-{kind}" for n, (kind, _, _) in enumerate(TRUE)])
def test_redacting_twice_changes_nothing_more(kind: str, around: str, secret: str) -> None:
    once, _ = redact(around.format(secret))
    assert redact(once)[0] == once


@pytest.mark.parametrize(("kind", "around", "secret"), TRUE, ids=[f"{n}-{kind}" for n, (kind, _, _) in enumerate(TRUE)])
def test_a_secret_is_found_in_the_middle_of_a_long_message(kind: str, around: str, secret: str) -> None:
    text = "A line of talk.\n" * 50 + around.format(secret) + "\n" + "More of it.\n" * 50
    redacted, report = redact(text)
    assert secret not in redacted and report.as_dict() == {kind: 1}


def test_addresses_and_home_paths_are_replaced_only_on_request() -> None:
    text = r"ada@example.org wrote /home/ada/notes.txt, /Users/ada/x and C:\Users\ada\y; see /home/"
    assert redact(text) == (text, Report())
    redacted, report = redact(text, emails=True, home_paths=True)
    assert redacted == (
        "[redacted: e-mail address] wrote /home/[redacted: home path]/notes.txt, /Users/[redacted: home path]/x"
        r" and C:\Users\[redacted: home path]\y; see /home/"
    )
    assert report.as_dict() == {"home path": 3, "e-mail address": 1}
    assert str(report) == "3 home paths, 1 e-mail address"


def test_values_are_redacted_in_every_depth_and_by_their_key() -> None:
    secret = TRUE[0][2]
    redactor = Redactor()
    value = {"a": [{"text": f"use {secret}"}], "password": "Sommer2024!", "n": 5, "none": None, "ok": "Sommer2024!"}
    assert redactor.value(value) == {
        "a": [{"text": "use [redacted: openai key]"}], "password": "[redacted: password]", "n": 5, "none": None,
        "ok": "Sommer2024!",
    }  # fmt: skip
    assert redactor.report.total == 2


def test_a_secret_in_json_text_leaves_valid_json() -> None:
    for _, around, secret in TRUE:
        inner = json.dumps({"cmd": around.format(secret), "password": "Sommer2024!"})
        redacted, report = redact(json.dumps({"arguments": inner}))
        found = json.loads(json.loads(redacted)["arguments"])
        assert found["password"] == "[redacted: password]"
        assert secret not in found["cmd"] and report.total >= 1


@given(st.text())
def test_any_text_comes_back(text: str) -> None:
    redacted, report = redact(text, emails=True, home_paths=True)
    assert (redacted == text) == (report.total == 0)


@pytest.mark.parametrize(
    "hostile",
    ["password" * 5000, "password: " * 4000, "://" * 10_000, "a" * 100_000 + "@", "http://" + "a:" * 20_000 + "@",
     "eyJ" + "a" * 50_000, "-----BEGIN PRIVATE KEY-----" * 3000, "token=" + "x1" * 50_000, "sk-" * 30_000,
     "PuTTY-User-Key-File-2:" * 3000, "curl " * 20_000, "?key=" * 20_000, "a.b" * 30_000, "/home/" * 20_000],
    ids=lambda text: text[:12],
)  # fmt: skip
def test_hostile_text_comes_back_before_the_suite_gives_up(hostile: str) -> None:
    """Rules that backtrack over it would need hours."""
    redacted, report = redact(hostile, emails=True, home_paths=True)
    assert redacted == hostile or report.total


def test_the_report_names_kinds_in_words() -> None:
    report = Report()
    assert str(report) == "nothing"
    report.add("openai key", 2)
    report.add("password in a URL", 2)
    report.add("password")
    assert str(report) == "2 openai keys, 2 passwords in a URL, 1 password"
