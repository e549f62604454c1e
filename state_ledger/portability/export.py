"""One export: its plan, what it gives of the store piece by piece, and whether all of it was given."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from datetime import datetime, timezone
from typing import Any

import state_ledger
from state_ledger.errors import StateLedgerError
from state_ledger.portability import agreement, records
from state_ledger.portability import plan as plans
from state_ledger.portability.plan import Part, Plan
from state_ledger.portability.records import Messages, Record, Row
from state_ledger.portability.scope import Scope
from state_ledger.portability.source import Source, select
from state_ledger.redact import Redactor, Report


class ExportBroken(StateLedgerError):
    """An export cannot be made whole; the sentence says what is missing. What was written so far is cut off."""


@dataclass(frozen=True)
class Options:
    """How an export is made.

    redact: whether secrets are replaced; emails, home_paths: whether these are too. taken_back: whether
    messages that were taken back are in it. spreadsheet_safe: whether cells that a spreadsheet would run
    are marked as text. zone: IANA name of the zone of times for people.
    """

    redact: bool = False
    emails: bool = False
    home_paths: bool = False
    taken_back: bool = False
    spreadsheet_safe: bool = False
    zone: str = "UTC"


@dataclass
class Export:
    """What a format writes.

    scope, plan, options: what was asked for and what there is of it. store: the store's name. last_message: the
    greatest id of one when it was planned.
    made_at: when. given_messages, given_sessions, given_usage: how much was handed out so far.
    """

    source: Source
    scope: Scope
    plan: Plan
    options: Options
    store: str = ""
    last_message: int = 0
    made_at: datetime = field(default_factory=lambda: datetime.now(timezone.utc))
    redactor: Redactor | None = None
    given_messages: int = 0
    given_sessions: int = 0
    given_usage: int = 0

    def __post_init__(self) -> None:
        if self.options.redact and self.redactor is None:
            self.redactor = Redactor(emails=self.options.emails, home_paths=self.options.home_paths)
        self.messages = Messages(self.source.columns["messages"], self.redactor)

    @classmethod
    def open(
        cls,
        source: Source,
        scope: Scope,
        options: Options | None = None,
        *,
        store: str = "",
        among: Collection[int] | None = None,
    ) -> Export:
        """Looks up what is in the scope. Raises NothingToExport.

        among: the ids of messages that a search found, for the scope `search`.
        """
        options = options or Options()
        last = source.rows("SELECT coalesce(max(id), 0) FROM main.messages")[0][0]
        plan = plans.make(source, scope, with_taken_back=options.taken_back, among=among)
        return cls(source, scope, plan, options, store, last_message=last)

    def must_be_all(self, *, quickly: bool = False) -> None:
        """Raises StoreUnreadableError where damage hides rows of the scope.

        quickly: the tables of a large store are not walked through, only the indexes.
        """
        if self.scope.kind == "all" and agreement.may_be_walked(self.source, quickly):
            rows = self.plan.messages + self.plan.taken_back + self.plan.copies
            agreement.of_everything(self.source, rows, self.last_message)
        else:
            agreement.of_sessions(self.source, [part.session_id for part in self.plan.parts])

    @property
    def tool(self) -> str:
        return f"state-ledger {state_ledger.__version__}"

    @property
    def report(self) -> Report:
        """What was replaced so far."""
        return self.redactor.report if self.redactor is not None else Report()

    @property
    def counts(self) -> dict[str, int]:
        """How much a whole file holds."""
        return {"sessions": len(self.plan.parts), "messages": self.plan.messages, "usage_rows": self.plan.usage}

    @property
    def whole(self) -> bool:
        """Whether everything that was planned has been given."""
        if self.given_messages != self.plan.messages:
            return False
        # A format of messages alone gives no sessions.
        return not self.given_sessions or (self.given_sessions, self.given_usage) == (
            len(self.plan.parts), self.plan.usage,
        )  # fmt: skip

    def session(self, part: Part, only: Collection[str] | None = None) -> Record:
        """The session's own row, or these columns of it; for messages of a session that is gone, its id alone."""
        columns = self.source.columns["sessions"]
        rows = self.source.rows(
            f"SELECT {select(self.source, 'sessions')} FROM main.sessions WHERE id = ?", (part.session_id,)
        )
        self.given_sessions += 1
        if not rows:
            problem = "The store has messages or calls of this session, but not the session."
            return {"id": part.session_id, "problem": problem}
        return records.other(columns, self.redactor, only)(rows[0])

    def usage(self, part: Part) -> list[Record]:
        """The session's rows of calls."""
        if not part.usage:
            return []
        columns = self.source.columns["session_model_usage"]
        rows = self.source.rows(
            f"SELECT {select(self.source, 'session_model_usage')} FROM main.session_model_usage"
            " WHERE session_id = ? ORDER BY rowid",
            (part.session_id,),
        )
        self.given_usage += len(rows)
        return list(map(records.other(columns, self.redactor), rows))

    def pages(self, part: Part) -> Iterator[list[Row]]:
        """The rows of the session's messages, a page at a time."""
        for page in self.source.messages(part.ids):
            self.given_messages += len(page)
            yield page

    def flat_pages(self) -> Iterator[list[Row]]:
        """All messages as rows of cells (`records.Messages.flat`), a page at a time."""
        for part in self.plan.parts:
            for page in self.pages(part):
                yield [self.messages.flat(row, part.states) for row in page]

    def must_be_whole(self) -> None:
        """Raises ExportBroken if rows were deleted while the export ran: for formats that cannot say so."""
        missing = self.plan.messages - self.given_messages
        if missing:
            raise ExportBroken(
                f"{missing:,} of {self.plan.messages:,} messages were deleted while the export ran; it is not whole."
            )

    def header(self) -> dict[str, Any]:
        """The facts with which a file begins."""
        return {
            "tool": self.tool,
            "store": self.store,
            "schema_version": self.source.shape.version,
            "scope": {"kind": self.scope.kind, "value": self.scope.value},
            "counts": self.counts,
            "left_out": {"taken_back": self.plan.taken_back, "copies": self.plan.copies},
            "redacted": self.redactor is not None,
            "exported_at": self.made_at.isoformat(timespec="seconds"),
        }
