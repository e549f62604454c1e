"""The documentation of the canned queries as Markdown, made from their files.

`python -m state_ledger.questions.documentation` prints it; a test holds `docs/queries.md` to it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from state_ledger import questions
from state_ledger.questions import OF_FLEET, OF_STORES, Question, of_fleet, of_stores
from state_ledger.questions.parameters import COMMON, Parameter

INTRODUCTION = f"""# Canned queries

Each of them is a page with a form, rows and, where it helps, a chart, at `/<store>/<name>`; rows as JSON at
`/<store>/<name>.json?_shape=objects` and at `/<store>/-/ask/<name>.json`, every row as CSV at `/<store>/<name>.csv`.
In a terminal `state-ledger query <name>`, to a file `state-ledger export --question <name>`, over several stores
`/-/ledger/all/<name>`, over a fleet `/-/ledger/fleet/<name>`; those of the groups {OF_STORES} and {OF_FLEET} are asked
there only. What the figures mean stands in
[accounting.md](accounting.md), the views they read in [semantic-layer.md](semantic-layer.md).

Parameters go into the address. One that is left out has its default; a value that cannot be meant is refused, with
what it may be. These mean the same in every query that has them:

"""


def render() -> str:
    """The whole page."""
    return INTRODUCTION + _table(COMMON.values()) + "".join(_group(name) for name in _groups())


def _all() -> list[Question]:
    return [*questions.load().values(), *of_stores().values(), *of_fleet().values()]


def _groups() -> list[str]:
    return sorted({each.group for each in _all()})


def _group(name: str) -> str:
    asked = [each for each in _all() if each.group == name]
    return f"\n## {name}\n" + "".join("\n" + "\n".join(_lines(each)) + "\n" for each in asked)


def _lines(question: Question) -> Iterator[str]:
    yield f"### {question.name}\n"
    yield f"*{question.title}.* {question.description}\n"
    common = [each.name for each in question.parameters if _is_common(each)]
    own = [each for each in question.parameters if not _is_common(each)]
    if common:
        yield "Parameters of every query: " + ", ".join(f"`{name}`" for name in common) + ".\n"
    if own:
        yield _table(own)
    yield "| column | unit | meaning |\n|---|---|---|"
    for name, meaning in question.columns.items():
        yield f"| `{name}` | {meaning.unit} | {_cell(meaning.description)} |"


def _is_common(parameter: Parameter) -> bool:
    return COMMON.get(parameter.name) == parameter


def _table(parameters: Iterable[Parameter]) -> str:
    lines = ["| parameter | default | what it is |", "|---|---|---|"]
    for each in parameters:
        default = f"`{each.default}`" if each.default else ""
        lines.append(f"| `{each.name}` | {default} | {_cell(_meaning(each))} |")
    return "\n".join(lines) + "\n"


def _meaning(parameter: Parameter) -> str:
    if parameter.choices:
        return f"{parameter.label}: {', '.join(choice or 'empty' for choice in parameter.choices)}"
    bounds = "" if parameter.maximum is None else f", {parameter.minimum} to {parameter.maximum}"
    return parameter.label + bounds


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


if __name__ == "__main__":
    print(render(), end="")
