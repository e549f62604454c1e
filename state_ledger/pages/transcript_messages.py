"""Messages of a transcript as HTML: roles set apart, calls with their results, what is foldable folded.

Built as strings: a page of 500 messages has some ten thousand elements.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import date, datetime, timezone
from functools import lru_cache
from html import escape
from zoneinfo import ZoneInfo

from state_ledger import markdown
from state_ledger.pages import figures
from state_ledger.pages.difference import difference
from state_ledger.pages.links import Links
from state_ledger.pages.sums import Sums
from state_ledger.pages.transcript import Fold, Transcript
from state_ledger.pages.transcript_calls import call_html, calls_of, glimpse, laid_out, result_html
from state_ledger.transcript import Message, Node
from state_ledger.transcript.messages import Stretch, Text

ROLES = {"user": "User", "assistant": "Assistant", "tool": "Tool", "system": "System"}
"""What the known roles are called; others are shown as they are stored."""

USUAL_ENDS = (None, "stop", "end_turn", "tool_calls", "tool_use")
"""Reasons to stop that go without saying."""


@lru_cache(maxsize=256)
def _spelled(day: date) -> str:
    return f"{day:%A}, {day.day} {day:%B} {day.year}"


class MessagesHtml:
    """Writes the messages of one page.

    render: text of a stranger to harmless HTML. address: the page of a message, by its id, for links.
    """

    def __init__(
        self, transcript: Transcript, at: Links, render: Callable[[str], str], address: Callable[..., str]
    ) -> None:
        self.transcript = transcript
        self.at = at
        self.render = render
        self.address = address
        self.zone = ZoneInfo(transcript.wanted.zone)
        self.nodes = transcript.scope.family.nodes

    def html(self) -> str:
        """All messages of the page, joints between sessions and days included."""
        return "".join(self._stretch(self.transcript.page, self.transcript.folds))

    def _stretch(self, page: Stretch, folds: Mapping[int, Sequence[Fold]], *, inside: bool = False) -> Iterator[str]:
        calls = {}
        for message in page.messages:
            for call in calls_of(message):
                calls[message.session_id, call.id] = message.id
        results: dict[int, list[Message]] = {}
        shown = []
        for message in page.messages:
            key = (message.session_id, message.tool_call_id or "")
            caller = calls.get(key) if message.role == "tool" and key[1] else None
            if caller is None or caller > message.id:
                shown.append(message)
            else:
                results.setdefault(caller, []).append(message)
        yield from self._joined(shown, results, folds, page, inside)

    def _joined(
        self,
        shown: Sequence[Message],
        results: Mapping[int, Sequence[Message]],
        folds: Mapping[int, Sequence[Fold]],
        page: Stretch,
        inside: bool,
    ) -> Iterator[str]:
        session, day, folded = "", "", False
        for number, message in enumerate(shown):
            if message.session_id != session or (folded and message.state != "compacted"):
                if folded:
                    yield "</details>"
                folded = False
            if message.session_id != session:
                begins = number > 0 or page.before is None or page.before[0] != message.session_id
                if not inside or number > 0:
                    yield self._joint(message.session_id, begins)
                session, day = message.session_id, ""
            if message.state == "compacted" and not folded:
                yield self._compacted(shown[number:], page)
                folded = True
            today = self._day(message.timestamp)
            if today != day and not inside:
                yield f'<p class="day"><span>{escape(today)}</span></p>'
            day = today
            answers = results.get(message.id, ())
            called = [fold for each in (message, *answers) for fold in folds.get(each.id, ())]
            yield self._message(message, answers, called)
        if folded:
            yield "</details>"

    def _compacted(self, rest: Sequence[Message], page: Stretch) -> str:
        run = 0
        for message in rest:
            if message.state != "compacted" or message.session_id != rest[0].session_id:
                break
            run += 1
        return (
            '<details class="compacted" open><summary>'
            f"{figures.plural(run, 'message')} on this page summarised away: the model no longer saw "
            f"{'it' if run == 1 else 'them'} afterwards</summary>"
        )

    # Joints --------------------------------------------------------------------------------------

    def _joint(self, session_id: str, begins: bool) -> str:
        """Where a session begins on the page, and what joins it to the one before."""
        node = self.nodes.get(session_id)
        if node is None:
            return ""
        if self.transcript.wanted.kind == "session" and node.parent is None and begins:
            said = "The session begins"
        else:
            said = self._said(node) if begins else f"Segment {node.segment}, continued"
        return f'<h3 class="joint"><span>{said}</span></h3>'

    def _said(self, node: Node) -> str:
        parent = self.nodes.get(node.parent) if node.parent else None
        link = f'<a href="{escape(self.at.session(node.session_id))}">{escape(node.title)}</a>'
        if parent is None:
            return f"The conversation begins: {link}"
        end = f" ({escape(figures.cut(str(parent.facts['end_reason']), 100))})" if parent.facts["end_reason"] else ""
        before = f'<a href="{escape(self.at.session(parent.session_id, {"page": "last"}))}">{escape(parent.title)}</a>'
        if node.kind == "continuation":
            return f"Segment {node.segment}: {link} goes on from {before}{end}"
        kinds = {"branch": "branched off from", "delegate": "was delegated by"}
        return f"{link} {kinds.get(node.kind, 'comes after')} {before}{end}"

    def _day(self, timestamp: float | None) -> str:
        if timestamp is None:
            return "no time recorded"
        local = datetime.fromtimestamp(timestamp, tz=timezone.utc).astimezone(self.zone)
        return _spelled(local.date())

    # One message ---------------------------------------------------------------------------------

    def _message(self, message: Message, answers: Sequence[Message], called: Sequence[Fold]) -> str:
        kinds = [message.role if message.role in ROLES else "other", message.state.replace(" ", "-")]
        if message.id == self.transcript.target:
            kinds.append("target")
        role = escape(figures.cut(ROLES.get(message.role, message.role), 100)) + self._tool(message)
        return (
            f'<article class="message {" ".join(kinds)}" id="m{message.id}">'
            f'<div class="margin">{self._margin(message)}</div><div class="said">'
            f'<div class="who"><h4 class="role">{role}</h4>'
            f"{self._marks(message)}</div>{self._reasoning(message)}{self._body(message)}{self._problem(message)}"
            f"{self._calls(message, answers)}{''.join(map(self._fold, called))}{self._sent(message)}"
            "</div></article>"
        )

    def _tool(self, message: Message) -> str:
        name = message.tool_name
        return f' <code>{escape(figures.cut(name))}</code>' if message.role == "tool" and name else ""

    def _margin(self, message: Message) -> str:
        """Time, tokens and model; the time is the link to the message."""
        lines = [f'<a href="{escape(self.address(message.id))}" title="Link to message {message.id}">'
                 f"{self._time(message.timestamp)}</a>"]  # fmt: skip
        if message.token_count is not None:
            lines.append(f'<span title="tokens, as stored">{figures.plural(message.token_count, "token")}</span>')
        elif message.bytes:
            said = figures.short(max(1, round(message.bytes / 4)))
            lines.append(
                f'<span title="An estimate, one token for four bytes of text: the store keeps no tokens of single '
                f'messages">≈ {said} tokens</span>'
            )
        node = self.nodes.get(message.session_id)
        if message.role == "assistant" and node is not None and node.facts["model"]:
            model = escape(figures.cut(str(node.facts["model"])))
            lines.append(f'<span class="model" title="Model of the session: {model}">{model}</span>')
        return "".join(lines)

    def _time(self, timestamp: float | None) -> str:
        if timestamp is None:
            return "no time"
        utc = datetime.fromtimestamp(timestamp, tz=timezone.utc)
        local = utc.astimezone(self.zone)
        exact = local.isoformat(" ", "seconds")
        return f'<time datetime="{utc.isoformat(timespec="seconds")}" title="{exact}">{exact[11:19]}</time>'

    def _marks(self, message: Message, *, whose: bool = True) -> str:
        """What is special about a message; `whose`: also what a result shares with its call."""
        said = []
        if message.state == "compacted" and whose:
            said.append(("compacted", "Summarised away: kept in the record, no longer sent to the model"))
        if message.state == "taken back":
            said.append(("taken back", "Taken back by the user"))
        if message.observed:
            said.append(("overheard", "Seen in a group, not addressed to the agent"))
        if message.display_kind:
            said.append((message.display_kind.replace("_", " "), "How the program shows the message"))
        if message.finish_reason not in USUAL_ENDS:
            said.append((f"stopped: {message.finish_reason}", "Why the model stopped, as the provider says"))
        chips = "".join(f'<li title="{escape(title)}">{escape(figures.cut(text, 100))}</li>' for text, title in said)
        return f'<ul class="marks">{chips}</ul>' if chips else ""

    def _reasoning(self, message: Message) -> str:
        if message.reasoning is None:
            return ""
        text = message.reasoning
        return (
            f'<details class="reasoning"><summary>Reasoning <span class="glimpse">{escape(glimpse(text.shown))}</span>'
            f'</summary><pre class="ledger-plain">{escape(text.shown[:20_000])}</pre>'
            f"{self._cut(message, text, 20_000)}</details>"
        )

    def _body(self, message: Message) -> str:
        if message.parts is not None:
            return "".join(self._part(message, kind, text) for kind, text in message.parts) + self._cut(
                message, message.text, message.text.length
            )
        if not message.text.shown:
            return ""
        if message.role == "tool":
            return result_html(message, opened=message.id == self.transcript.target) + self._cut(message, message.text)
        return self._markdown(message.text.shown) + self._cut(message, message.text)

    def _part(self, message: Message, kind: str, text: Text) -> str:
        if kind in ("text", "input_text", "output_text", ""):
            shown = text.shown
            body = laid_out(shown) if message.role == "tool" else self._markdown(shown)
            return f'<div class="part">{body}{self._cut(message, text)}</div>'
        kind = f'<span class="kind">{escape(figures.cut(kind, 60))}</span>'
        return f'<p class="part placeholder">{kind} {escape(figures.cut(text.shown))}</p>'

    def _markdown(self, text: str) -> str:
        return f'<div class="ledger-markdown">{markdown.softened(markdown.lowered(self.render(text), 4))}</div>'

    def _cut(self, message: Message, text: Text, most: int | None = None) -> str:
        shown = len(text.shown) if most is None else min(most, len(text.shown))
        if text.length <= shown or (most is not None and text.length <= most):
            return ""
        whole = escape(self.at.row("messages", message.id, form="json"))
        return (
            f'<p class="ledger-note">… Cut at {shown:,} of {text.length:,} characters:'
            f' <a href="{whole}">whole text as JSON</a>.</p>'
        )

    def _problem(self, message: Message) -> str:
        return f'<p class="ledger-note">{escape(message.problem)}</p>' if message.problem else ""

    def _calls(self, message: Message, answers: Sequence[Message]) -> str:
        calls = calls_of(message)
        if message.tool_calls is not None and not calls:
            return (
                f'<pre class="ledger-plain raw">{escape(message.tool_calls.shown[:20_000])}</pre>'
                '<p class="ledger-note">The tool calls are not a JSON list of calls: shown as they are stored.</p>'
            )
        written = []
        for call in calls:
            written.append(call_html(call))
            written += [self._answer(each) for each in answers if each.tool_call_id == call.id]
        return f'<div class="calls">{"".join(written)}</div>' if written else ""

    def _answer(self, message: Message) -> str:
        target = message.id == self.transcript.target
        kind = " target" if target else ""
        note = self._cut(message, message.text) + self._problem(message)
        body = result_html(message, opened=target)
        if message.parts is not None:
            body = "".join(self._part(message, kind, text) for kind, text in message.parts)
        return (
            f'<div class="result{kind} {message.state.replace(" ", "-")}" id="m{message.id}">{body}'
            f"{self._marks(message, whose=False)}{note}{self._sent(message)}</div>"
        )

    # What was sent -------------------------------------------------------------------------------

    def _sent(self, message: Message) -> str:
        if message.sent_verbatim:
            return ""
        compared = self.transcript.compared
        if compared is None or compared[0] != message.id:
            href = escape(self.address(message.id, compared=True))
            return f'<p class="sent"><a href="{href}">Sent differently: show what the model got</a></p>'
        shown, sent = compared[1], compared[2]
        cut = max(shown.length, sent.length) if shown.cut or sent.cut else 0
        note = f'<p class="ledger-note">Compared up to {len(sent.shown):,} of {cut:,} characters.</p>' if cut else ""
        return (
            '<details class="sent" open><summary>What the model got instead</summary>'
            f"{difference(shown.shown, sent.shown)}{note}</details>"
        )

    # Delegates -----------------------------------------------------------------------------------

    def _fold(self, fold: Fold) -> str:
        node = self.nodes[fold.session_id]
        chain = self.transcript.scope.family.segments(node.conversation) or [node]
        sums = Sums.of(row for each in chain for row in each.usage)
        count = sum(each.facts["messages"] or 0 for each in chain)
        model = figures.cut(str(node.facts["model"] or ""))
        facts = " · ".join(filter(None, (model, figures.plural(count, "message"), sums.cost_text)))
        link = escape(self.at.session(node.session_id))
        name = f'<span class="kind">Delegate</span> <b>{escape(node.title)}</b>'
        head = f'{name} <span class="sub">{escape(facts)}</span>'
        if not fold.page.messages:
            return f'<p class="delegate"><a href="{link}">{head}</a></p>'
        more = "" if fold.page.after is None else f' The first {len(fold.page.messages)} of {count:,} messages:'
        if fold.page.before is not None:
            more = f" {len(fold.page.messages)} of {count:,} messages:"
        inner = "".join(self._stretch(fold.page, fold.delegates, inside=True))
        return (
            f'<details class="delegate"{" open" if fold.opened else ""}><summary>{head}</summary>'
            f'<p class="provenance">{more} <a href="{link}">this delegate on a page of its own</a></p>{inner}</details>'
        )
