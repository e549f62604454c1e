"""Every attack of `attacks.py`, in every field that a page shows, in a real Chromium.

Case 20 and the XSS rows of the bug log: nothing runs, nothing is asked of another host, no link leads
to a script, and what was written is still there to be read.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from state_ledger import questions, schema
from state_ledger.pages.cost import GROUPS
from state_ledger.pages.links import Links
from state_ledger.sqlite import sqlite3
from tests.attacks import ATTACKS
from tests.conftest import EXAMPLES_DIVISOR
from tests.test_browser import browser

__all__ = ["browser"]

pytestmark = pytest.mark.browser

START = 1_790_000_000.0
PER_FAMILY = 9
STEP = min(EXAMPLES_DIVISOR, 4)
"""Pages that show one attack are visited for each, or each fourth where examples are fewer."""
AT = Links("/attacked")
NAMES = list(ATTACKS)


def session_id(number: int) -> str:
    """An id that holds an attack, as short as servers take addresses."""
    return f"{list(ATTACKS.values())[number][:300]}-{number}".replace("\x00", "")


def root_id(number: int) -> str:
    return f"root {number // PER_FAMILY}"


def mark(number: int) -> str:
    return f"zq{number}zq"


@pytest.fixture(scope="module")
def attacked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store in which each attack has a session, delegated by a session that nine of them share."""
    path = tmp_path_factory.mktemp("attacked") / "attacked.db"
    with closing(sqlite3.connect(path)) as connection:
        schema.create(connection)
        for number, text in enumerate(ATTACKS.values()):
            _write(connection, number, text)
        connection.commit()
    return path


def _insert(connection: Any, table: str, **values: Any) -> None:
    names = ", ".join(values)
    connection.execute(f"INSERT INTO {table} ({names}) VALUES ({', '.join('?' * len(values))})", list(values.values()))


def _write(connection: Any, number: int, text: str) -> None:
    root, own, time = root_id(number), session_id(number), START + 1000 * number
    if number % PER_FAMILY == 0:
        _insert(connection, "sessions", id=root, source="cli", started_at=time - 500)
        _insert(connection, "messages", session_id=root, role="user", content="go", timestamp=time - 400)
    _insert(
        connection, "sessions", id=own, source=text, title=f"{text}{number}", model=text, parent_session_id=root,
        model_config=json.dumps({"_delegate_from": root}), cwd=text, git_branch=text, end_reason=text,
        ended_at=time + 100, user_id=text, profile_name=text, billing_provider=text, billing_base_url=text,
        billing_mode=text, cost_status=text, cost_source=text, system_prompt=text, display_name=text,
        started_at=time, input_tokens=10, output_tokens=5, estimated_cost_usd=0.5, api_call_count=1,
    )  # fmt: skip
    _insert(
        connection, "session_model_usage", session_id=own, model=text, billing_provider=text, billing_base_url=text,
        billing_mode=text, task=text, cost_status=text, cost_source=text, input_tokens=10, output_tokens=5,
        estimated_cost_usd=0.5, api_call_count=1, first_seen=time, last_seen=time + 9,
    )  # fmt: skip
    said = f"{mark(number)} {text}\n\n{text}\n"
    arguments = json.dumps({"q": text, text: [text]})
    call = {"id": text, "type": "function", "function": {"name": text, "arguments": arguments}}
    parts = [
        {"type": "text", "text": text},
        {"type": text, "x": text},
        {"type": "image_url", "image_url": {"url": text}},
        {"type": "image", "source": {"media_type": text, "data": text}},
    ]
    for step, values in enumerate(
        (
            {"role": "user", "content": said, "api_content": f"{text} {said} {text}"},
            {"role": "assistant", "content": said, "reasoning": text, "tool_calls": json.dumps([call]),
             "finish_reason": text},
            {"role": "tool", "content": said, "tool_call_id": text, "tool_name": text},
            {"role": "tool", "content": text, "tool_call_id": "another", "tool_name": text},
            {"role": text, "content": "\x00json:" + json.dumps(parts), "display_kind": text},
            {"role": "assistant", "content": "\x00json:" + text, "tool_calls": text, "observed": 1},
            {"role": "assistant", "content": text, "active": 0, "compacted": 1},
            {"role": "user", "content": said, "active": 0},
        )
    ):
        _insert(connection, "messages", session_id=own, timestamp=time + step, **values)


class Watch:
    """A page in Chromium that remembers dialogs, requests to others, and what its policy had to stop."""

    def __init__(self, browser: Any, address: str) -> None:
        self.address = address
        self.trouble: list[str] = []
        self.context = browser.new_context(viewport={"width": 1280, "height": 900})
        self.page = self.context.new_page()
        self.page.on("dialog", self._dialog)
        self.page.on("pageerror", lambda error: self.trouble.append(f"script error: {error}"))
        self.page.on("popup", lambda popup: self.trouble.append(f"window: {popup.url}"))
        self.page.on("request", self._requested)
        self.page.expose_function("reportViolation", lambda said: self.trouble.append(f"policy: {said}"))
        self.page.add_init_script(
            "document.addEventListener('securitypolicyviolation', event =>"
            " window.reportViolation(`${event.violatedDirective} ${event.blockedURI} ${event.sample}`))"
        )

    def _dialog(self, dialog: Any) -> None:
        self.trouble.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    def _requested(self, request: Any) -> None:
        if urlsplit(request.url).netloc != urlsplit(self.address).netloc:
            self.trouble.append(f"request: {request.url}")

    def visit(self, path: str) -> str:
        """Opens a page and everything on it that opens; returns its text."""
        self.trouble.clear()
        answer = self.page.goto(self.address + path, wait_until="load")
        assert answer is not None and answer.status == 200, f"{path[:200]}: {answer and answer.status}"
        found = self.page.evaluate(INSPECT)
        assert not found["dangers"], (path[:200], found["dangers"][:5])
        assert self.page.url.startswith(self.address), self.page.url
        assert not self.trouble, (path[:200], self.trouble[:5])
        return str(found["text"])


INSPECT = """
() => {
  for (const fold of document.querySelectorAll('details')) fold.open = true;
  const dangers = [];
  const schemes = ['javascript:', 'data:', 'vbscript:', 'file:', 'blob:'];
  for (const element of document.querySelectorAll('*')) {
    const tag = element.localName;
    if (['iframe', 'frame', 'object', 'embed', 'img', 'image', 'video', 'audio', 'base', 'math', 'marquee', 'animate',
         'foreignobject', 'use', 'applet', 'portal', 'template'].includes(tag.toLowerCase())) dangers.push(tag);
    if (tag === 'script' && !element.nonce && !element.src) dangers.push('script');
    if (tag === 'meta' && element.httpEquiv) dangers.push('meta ' + element.httpEquiv);
    for (const {name, value} of element.attributes) {
      if (name.startsWith('on') && value !== 'openColumnChooser()') dangers.push(`${tag} ${name}=${value}`);
      if (name === 'contenteditable' && element.closest('form.sql .cm-editor')) continue;  // Datasette's own editor
      if (['autofocus', 'ping', 'srcdoc', 'contenteditable', 'popover'].includes(name)) dangers.push(`${tag} ${name}`);
      if (['href', 'src', 'action', 'formaction', 'xlink:href', 'poster', 'srcset'].includes(name)) {
        const plain = value.replace(/[\\u0000-\\u0020]/g, '').toLowerCase();
        const said = `${tag} ${name}=${value.slice(0, 80)}`;
        if (schemes.some((scheme) => plain.startsWith(scheme))) dangers.push(said);
        if (name !== 'href' && plain.includes('//') && !plain.startsWith(location.origin)) dangers.push(said);
      }
    }
  }
  for (const anchor of document.querySelectorAll('a[href]'))
    if (anchor.protocol && !['http:', 'https:', 'mailto:'].includes(anchor.protocol))
      dangers.push(`link ${anchor.href}`.slice(0, 80));
  return {dangers, text: document.body.innerText};
}
"""


@pytest.fixture
def watch(browser: Any) -> Iterator[Callable[[str], Watch]]:
    watches: list[Watch] = []

    def start(address: str) -> Watch:
        watches.append(Watch(browser, address))
        return watches[-1]

    yield start
    for each in watches:
        each.context.close()


def test_the_corpus_is_large_and_each_attack_is_another() -> None:
    assert len(ATTACKS) >= 60
    assert len(set(ATTACKS.values())) == len(ATTACKS)


def test_no_attack_runs_on_the_page_of_its_session(
    attacked: Path, serving: Callable[..., str], watch: Callable[[str], Watch]
) -> None:
    here = watch(serving([attacked]))
    with closing(sqlite3.connect(attacked)) as connection:
        first = dict(connection.execute("SELECT session_id, min(id) FROM messages GROUP BY session_id"))
    for number in range(0, len(ATTACKS), STEP):
        own = session_id(number)
        asked = {"message": str(first[own]), "sent": str(first[own]), "inactive": "1", "tz": "Asia/Tokyo"}
        text = here.visit(AT.session(own, asked))
        assert text.count(mark(number)) >= 5, f"{NAMES[number]}: user twice, assistant, tool, taken back, what was sent"


def test_no_attack_runs_in_a_conversation_or_folded_into_the_work_that_called_it(
    attacked: Path, serving: Callable[..., str], watch: Callable[[str], Watch]
) -> None:
    here = watch(serving([attacked]))
    for number in range(0, len(ATTACKS), PER_FAMILY * min(STEP, 2)):
        here.visit(AT.conversation(root_id(number)))
        text = here.visit(AT.work(root_id(number)))
        for each in range(number, min(number + PER_FAMILY, len(ATTACKS))):
            assert mark(each) in text, NAMES[each]
            assert here.page.locator(f'a[href="{AT.session(session_id(each))}"]').count() >= 2, NAMES[each]


def test_no_attack_runs_on_home_cost_or_question_pages(
    attacked: Path, serving: Callable[..., str], watch: Callable[[str], Watch]
) -> None:
    here = watch(serving([attacked], "--setting", "max_returned_rows", "500"))
    here.visit("/")
    here.visit("/attacked")
    here.visit(AT.ops({"plan": "1", "older_than": "0", "idle_days": "0", "check": "full"}))
    for group in GROUPS:
        here.visit(AT.cost({"period": "all", "group": group, "limit": "500"}))
    for name, question in questions.load().items():
        named = {parameter.name for parameter in question.parameters}
        given = {"since": "2020-01-01", "limit": str(len(ATTACKS) + 1)}
        here.visit(AT.query(name, {key: value for key, value in given.items() if key in named}))


@pytest.mark.parametrize("parameter", ["session", "model", "source"])
def test_no_attack_in_an_address_runs(
    parameter: str, attacked: Path, serving: Callable[..., str], watch: Callable[[str], Watch]
) -> None:
    here = watch(serving([attacked]))
    pages = {
        "session": lambda text: AT.query("lineage_work", {"session": text}),
        "model": lambda text: AT.cost({"period": "all", "model": text}),
        "source": lambda text: AT.query("recent_sessions", {"source": text}),
    }
    for text in list(ATTACKS.values())[:: 8 * STEP]:
        here.visit(pages[parameter](text[:300].replace("\x00", "")))


def test_no_attack_runs_on_stock_pages_of_tables_views_and_rows(
    attacked: Path, serving: Callable[..., str], watch: Callable[[str], Watch]
) -> None:
    here = watch(serving([attacked]))
    for table in ("sessions", "session_model_usage"):
        here.visit(f"/attacked/{table}?_size=200")
    for view in ("ledger_sessions", "ledger_usage", "ledger_tool_calls", "ledger_messages"):
        here.visit(f"/attacked?sql=select+*+from+{view}+limit+60")
    for last in range(0, len(ATTACKS) * 9, 100):
        here.visit(f"/attacked/messages?_size=100&id__gt={last}")
    for number in range(0, len(ATTACKS), 8 * STEP):
        here.visit(f"/attacked/sessions/{AT.row('', session_id(number)).rpartition('/')[2]}")
    for message in range(2, len(ATTACKS) * 8, 61 * STEP):
        here.visit(f"/attacked/messages/{message}")
