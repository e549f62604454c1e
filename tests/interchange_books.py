"""What the interchange tests write, and how they tell that nothing of it was lost."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from state_ledger.sqlite import read_only_uri, sqlite3
from tests.hermes import StoreProcess

SEARCHED = {
    "harbourmaster": "The harbourmaster of pier nine asked for the manifest again.",
    "Gezeitentafel": "Die Gezeitentafel für Süßwasserhäfen fehlt noch.",
    "расписание": "Где расписание паромов на завтра?",
    "الميناء": "متى تصل السفينة إلى الميناء الشمالي؟",
    "νηολόγιο": "Το νηολόγιο χρειάζεται ενημέρωση.",
    "数据库迁移": "请把数据库迁移到新的服务器上。",
    "潮汐": "明天的潮汐表在哪里？",
    "データベース": "新しいサーバーへデータベースを移してください。",
    "데이터베이스": "데이터베이스를 새 서버로 옮겨 주세요.",
    "crane_status": "Crane seven is out of order, see crane_status in the log 🏗️.",
}
"""A question and the one message that answers it."""

STRUCTURED = [
    {"type": "text", "text": "What is painted on the lighthouse keeper's door?"},
    {"type": "image_url", "image_url": {"url": "data:image/png;base64,aGFyYm91cg=="}},
]
TOOL_CALLS = [
    {"id": "call_1", "type": "function", "function": {"name": "tide_table", "arguments": '{"port": "Ostende"}'}},
    {"id": "call_2", "type": "function", "function": {"name": "read_file", "arguments": '{"path": "log.txt"}'}},
]
EXTREMES = ("", " \n\t ", "a\ttab and\r\nlines", "quote ' \" ` ; --", "e\u0301 \U0001f6a2 \ufffd", "x" * 70_000)
"""Contents that are stored as they are."""

ROUTE = {"model": "a-model", "billing_provider": "a-provider", "billing_base_url": "https://models.invalid/v1"}


@dataclass
class Books:
    """What a program was told and acknowledged: the record to hold its store against.

    messages: by id, `(session, role, content)` as handed over. answers: the id that answers each
    question of SEARCHED. tokens: by counter, summed over all calls. cost: dollars of all calls.
    """

    messages: dict[int, tuple[str, str, Any]] = field(default_factory=dict)
    answers: dict[str, int] = field(default_factory=dict)
    titles: dict[str, str] = field(default_factory=dict)
    tokens: dict[str, int] = field(default_factory=dict)
    cost: float = 0.0

    @property
    def sessions(self) -> set[str]:
        return {session for session, _, _ in self.messages.values()} | set(self.titles)

    def add(self, store: StoreProcess, session: str, role: str, content: Any, **columns: Any) -> int:
        """Appends a message and records it."""
        number = store.append_message(session, role, content, **columns)
        assert number not in self.messages
        self.messages[number] = (session, role, content)
        return int(number)

    def spend(self, store: StoreProcess, session: str, cost: float, **counters: int) -> None:
        """Reports one call of the model and records it."""
        store.update_token_counts(
            session, **counters, **ROUTE, estimated_cost_usd=cost, cost_status="estimated", api_call_count=1
        )
        self.count(cost, counters)

    def count(self, cost: float, counters: dict[str, int]) -> None:
        self.cost += cost
        for counter, number in counters.items():
            self.tokens[counter] = self.tokens.get(counter, 0) + number

    def title(self, store: StoreProcess, session: str, title: str) -> None:
        assert store.set_session_title(session, title) is True
        self.titles[session] = title


def write_books(store: StoreProcess, prefix: str, *, structured: bool = True) -> Books:
    """Writes sessions of every kind through a store's own methods.

    prefix: begins every session id, so that two programs can write into one store. structured:
    whether contents that are lists are among the messages; SQLite's releases index those differently.
    """
    books = Books()
    talk, tools, child, silent = (f"{prefix}-{name}" for name in ("talk", "tools", "child", "silent"))
    store.create_session(talk, "cli", model="a-model", system_prompt="Be brief.", model_config={"effort": "low"})
    for number, (question, text) in enumerate(SEARCHED.items()):
        text = f"{text} ({prefix})"
        books.answers[question] = books.add(store, talk, ("user", "assistant")[number % 2], text)
    for text in EXTREMES:
        books.add(store, talk, "user", text)
    books.title(store, talk, f"{prefix}: ports & tides «№ 1»")
    books.spend(store, talk, 0.0125, input_tokens=1200, output_tokens=340, cache_read_tokens=800)
    books.spend(store, talk, 0.25, input_tokens=90_000, output_tokens=2, cache_write_tokens=77, reasoning_tokens=5)

    store.create_session(tools, "telegram", user_id="u-1")
    books.add(store, tools, "user", "When is high water?")
    books.add(
        store, tools, "assistant", None, tool_calls=TOOL_CALLS, finish_reason="tool_calls",
        reasoning="Ask the table.", reasoning_details=[{"type": "summary", "text": "table"}],
    )  # fmt: skip
    books.add(store, tools, "tool", '{"high": "12:40"}', tool_name="tide_table", tool_call_id="call_1")
    if structured:
        books.add(store, tools, "user", STRUCTURED)
    books.title(store, tools, f"{prefix}: high water")
    books.spend(store, tools, 0.001, input_tokens=10, output_tokens=20)
    store.end_session(tools, "compression")
    store.create_session(child, "telegram", parent_session_id=tools)
    books.add(store, child, "user", "And low water?")
    if store.accepts("append_message", "platform_message_id"):
        books.add(store, child, "user", "(overheard)", platform_message_id="m-9", observed=True)
    store.create_session(silent, "cron")
    books.title(store, silent, f"{prefix}: nobody spoke")
    store.end_session(silent, "cron_complete")
    return books


KEYS = {
    "sessions": ("id",),
    "messages": ("id",),
    "session_model_usage": ("session_id", "model", "billing_provider", "billing_base_url", "billing_mode", "task"),
}


@dataclass(frozen=True)
class Snapshot:
    """All rows of the three tables that hold the books, by table and key, with their columns."""

    tables: dict[str, dict[Any, dict[str, Any]]]

    @classmethod
    def read(cls, path: Path) -> Snapshot:
        connection = sqlite3.connect(read_only_uri(path), uri=True)
        connection.row_factory = sqlite3.Row
        connection.text_factory = lambda raw: str(raw, "utf-8", "replace")
        there = {row[0] for row in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
        tables = {
            table: {
                tuple(row[name] for name in key if name in row.keys()): dict(row)  # noqa: SIM118
                for row in connection.execute(f"SELECT * FROM {table}")
            }
            for table, key in KEYS.items()
            if table in there
        }
        connection.close()
        return cls(tables)

    def lost_in(self, later: Snapshot, besides: Collection[str] = ()) -> list[str]:
        """What a later snapshot has no more, or otherwise; empty if nothing.

        besides: sessions whose own row, not whose messages, was meant to change.
        """
        found = []
        for table, rows in self.tables.items():
            for key, row in rows.items():
                other = later.tables[table].get(key)
                if other is None:
                    found.append(f"{table} {key} is gone")
                elif not (table == "sessions" and key[0] in besides):
                    found += [
                        f"{table} {key} {name}: {value!r} became {other.get(name)!r}"
                        for name, value in row.items()
                        if other.get(name) != value or type(other.get(name)) is not type(value)
                    ]
        return found

    def total(self, column: str, table: str = "sessions") -> Any:
        return sum(row[column] or 0 for row in self.tables[table].values())


def missing(store: StoreProcess, books: Books) -> list[str]:
    """What a program does not find of the books in its own way of reading: messages, titles, search."""
    found = []
    read: dict[int, tuple[str, str, Any]] = {}
    for session in sorted(books.sessions):
        ids = [row[0] for row in store.rows("SELECT id FROM messages WHERE session_id = ? ORDER BY id", [session])]
        messages = store.get_messages(session)
        if [message["id"] for message in messages] != ids:
            found.append(f"get_messages({session!r}) gives {[m['id'] for m in messages]}, stored are {ids}")
        read |= {message["id"]: (session, message["role"], message["content"]) for message in messages}
        exported = store.export_session(session)
        if exported is None or [m["content"] for m in exported["messages"]] != [m["content"] for m in messages]:
            found.append(f"export_session({session!r}) differs from get_messages")
    for number, handed_over in books.messages.items():
        if read.get(number) != handed_over:
            found.append(f"message {number}: {handed_over!r} is read as {read.get(number)!r}"[:400])
    for session, title in books.titles.items():
        if store.get_session_title(session) != title or store.get_session_by_title(title)["id"] != session:
            found.append(f"the title of {session!r} is {store.get_session_title(session)!r}")
    for question, number in books.answers.items():
        hits = [hit["id"] for hit in store.search_messages(question, limit=50)]
        if number not in hits:
            found.append(f"search_messages({question!r}) gives {hits}, not {number}")
    return found
