"""Who may not see a store learns nothing of it, from any route that the running Datasette has.

Each rule is asked of two instances that differ in one thing: the store that the visitor may not see holds
sessions in one, and none in the other. Whatever is asked, both have to answer alike, in status, headers and
body: then no text, name or figure of it is told, nor whether it has a session of some id. The addresses are
made from Datasette's own table of routes, so a route that is added is asked by itself.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from datasette import hookimpl
from datasette.plugins import pm

from state_ledger import SessionDB, questions
from state_ledger.plugins import compat
from tests import routes
from tests.conftest import THOROUGH

WORD = "lighthousekeeper"
CONCEALED = "concealed"
SECRETS = (WORD, "7919", "5150015")
TABLES = ("sessions", "messages", "session_model_usage")

VALUES = {
    "database": (CONCEALED,), "table": ("messages", "messages_fts", "search_sessions"), "pks": ("1",),
    "session": ("s1",), "kind": ("session",), "query": ("recent_sessions",), "scope": ("session", "all"),
    "format": ("json",), "path": ("app.css",), "file": ("ledger.css",), "version": ("0",), "rest": ("",),
}  # fmt: skip
ASKED = "q=away&id=s1&session=s1&_search=away&_facet=role&_where=1&_shape=objects"
"""Parameters that a visitor can guess, for every route that takes one of them."""

FOREIGN = {"origin": "https://evil.example", "sec-fetch-site": "cross-site"}
"""What a browser says of a page of another origin that asks; nothing is let out to it."""

TOLD_BY_THE_OPERATOR = ("/-/metadata", "/-/config")
"""Datasette shows the configuration, and what it names, to all who may see the instance."""


class Rule(NamedTuple):
    """What the operator wrote, which actor asks, and the plugin that decides, if there is one.

    through: whether the visitor may see that there is a database of this name. thoroughly: whether refusals are
    compared too, to the last byte.
    """

    given: dict[str, Any]
    actor: dict[str, Any] | None = None
    plugin: Any = None
    through: bool = False
    thoroughly: bool = False


class OneTableOnly:
    """Lets everybody see one database, and of the other nothing but a table of version numbers."""

    __name__ = "one_table_only"

    @hookimpl
    def permission_allowed(self, action: str, resource: Any) -> bool | None:
        database, table = resource if isinstance(resource, tuple) else (resource, None)
        return None if database != CONCEALED else action == "view-table" and table == "schema_version"

    @hookimpl
    def permission_resources_sql(self, action: str) -> Any:
        from datasette.permissions import PermissionSQL

        if action == "view-instance":
            return None
        rules = f"SELECT '{CONCEALED}' AS parent, NULL AS child, 0 AS allow, 'not theirs' AS reason"
        if action == "view-table":
            rules += f" UNION ALL SELECT '{CONCEALED}', 'schema_version', 1, 'theirs'"
        return PermissionSQL(rules)


RULES = {
    "nobody": Rule({"allow": False}),
    "one database": Rule({"databases": {CONCEALED: {"allow": False}}}, thoroughly=True),
    "some tables": Rule(
        {"databases": {CONCEALED: {"tables": {name: {"allow": {"id": "ada"}} for name in TABLES}}}}, through=True
    ),
    "a plugin": Rule({}, plugin=OneTableOnly()),
}
if compat.IS_1:
    RULES["a token"] = Rule({}, actor={"id": "ada", "_r": {"a": ["vi", "vd"]}}, through=True)


@pytest.fixture(scope="module")
def stores(tmp_path_factory: pytest.TempPathFactory) -> list[list[Path]]:
    """The files of two instances. Their folders have names of one length, and sizes are not compared."""
    made = []
    for full in (True, False):
        folder = tmp_path_factory.mktemp("stores") / "within" / "a" / "folder"
        folder.mkdir(parents=True)
        for name in (CONCEALED, "shown"):
            with SessionDB(folder / f"{name}.db") as db:
                if full and name == CONCEALED:
                    db.create_session("s1", "cli", model=f"model-{WORD}")
                    db.set_session_title("s1", f"about {WORD}")
                    db.append_messages("s1", [{"role": "user", "content": f"the {WORD} is away"}] * 7)
                    db.update_token_counts(
                        "s1", input_tokens=5150015, model=f"model-{WORD}", api_call_count=3, estimated_cost_usd=7919.5
                    )
        made.append([folder / f"{name}.db" for name in (CONCEALED, "shown")])
    return made


Ask = Callable[..., Awaitable[Any]]
Pair = Callable[[Rule], Awaitable[tuple[Any, Ask]]]


@pytest.fixture
def pair(make_datasette: Any, stores: list[list[Path]]) -> Iterator[Pair]:
    """`await pair(rule)`: an instance, and what asks both and fails where they do not answer alike."""
    registered: list[Any] = []

    async def start(rule: Rule) -> tuple[Any, Ask]:
        if rule.plugin is not None:
            pm.register(rule.plugin)
            registered.append(rule.plugin)
        given = {"config" if compat.IS_1 else "metadata": rule.given}
        both = [await make_datasette(paths, **given) for paths in stores]
        cookies = [{"ds_actor": each.sign({"a": rule.actor}, "actor")} if rule.actor else {} for each in both]

        async def ask(address: str, method: str = "GET") -> Any:
            full = await both[0].client.request(method, address, cookies=cookies[0], headers=FOREIGN)
            said = f"{method} {address} -> {full.status_code}"
            if full.status_code != 403 or rule.thoroughly:
                blank = await both[1].client.request(method, address, cookies=cookies[1], headers=FOREIGN)
                assert full.status_code == blank.status_code, said
                assert _headers(full) == _headers(blank), said
                assert _text(full, stores[0][0]) == _text(blank, stores[1][0]), said
            assert not [word for word in SECRETS if word in full.text], said
            assert full.headers["x-frame-options"] == "DENY", said
            assert "frame-ancestors 'none'" in full.headers["content-security-policy"], said
            assert not [name for name in full.headers if name.startswith("access-control-")], said
            if not rule.through and CONCEALED not in address and not address.startswith(TOLD_BY_THE_OPERATOR):
                assert CONCEALED not in full.text, said
            return full

        return both[0], ask

    yield start
    for plugin in registered:
        pm.unregister(plugin)


_ONE_TIME = re.compile(
    r'nonce="[^"]*"|name="csrftoken" value="[^"]*"|(?<=value=")Ij[^"]*|[\d.]+ ?ms|"(?:size|query_ms)": [\d.]+'
)


def _text(answer: Any, store: Path) -> str:
    """A body without what is of one request, or of the folder, and not of what was asked."""
    text = answer.text.replace("&#34;", '"').replace(str(store.parent), "FOLDER")
    return _ONE_TIME.sub("", text).replace(store.parents[3].name, "FOLDER")


def _headers(answer: Any) -> dict[str, str]:
    once = ("content-security-policy", "set-cookie", "content-length", "etag")
    return {name: value for name, value in answer.headers.items() if name not in once}


def of(datasette: Any, *, ours: bool) -> list[str]:
    """Every address of the routes that are ours, or of those that are Datasette's."""
    return [
        address
        for pattern, view in datasette._routes()
        if str(getattr(view, "__module__", "")).startswith("state_ledger.") is ours
        for address in routes.addresses(pattern, VALUES)
    ]


@pytest.mark.parametrize("rule", RULES)
async def test_no_route_of_ours_tells_anything_of_a_store_that_may_not_be_seen(pair: Pair, rule: str) -> None:
    datasette, ask = await pair(RULES[rule])
    for address in of(datasette, ours=True):
        await ask(f"{address}?{ASKED}")
    for method, address in (("HEAD", "export/session.json?id=s1"), ("OPTIONS", "home"), ("POST", "reconcile")):
        await ask(f"/{CONCEALED}/-/{address}", method)


@pytest.mark.parametrize("rule", list(RULES)[2:3] + list(RULES)[4:])
async def test_no_route_of_datasette_tells_it_either(pair: Pair, rule: str) -> None:
    datasette, ask = await pair(RULES[rule])
    addresses = of(datasette, ours=False)
    for address in addresses[:: 1 if THOROUGH else 2]:
        await ask(address)
    own = "/-/query.json" if compat.IS_1 else ".json"
    refused = await ask(f"/{CONCEALED}{own}?sql=select+*+from+messages&_shape=objects")
    assert refused.status_code == 403
    assert (await ask(f"/{CONCEALED}.db")).status_code == 403
    for name in list(questions.load())[:: 1 if THOROUGH else 15]:
        assert (await ask(f"/{CONCEALED}/{name}.json?_shape=objects")).status_code == 403


async def test_who_may_see_the_tables_sees_the_pages_and_own_sql_can_be_off(
    make_datasette: Any, stores: list[list[Path]]
) -> None:
    tables = RULES["some tables"].given["databases"][CONCEALED]["tables"]
    given = {"databases": {CONCEALED: {"tables": tables, "allow_sql": False}}}
    datasette = await make_datasette(stores[0], **{"config" if compat.IS_1 else "metadata": given})
    jar = {"ds_actor": datasette.sign({"a": {"id": "ada"}}, "actor")}
    for address in ("-/session/s1", "search.json?q=lighthousekeeper&_shape=objects", "messages_fts.json", "-/home"):
        answer = await datasette.client.get(f"/{CONCEALED}/{address}", cookies=jar)
        assert answer.status_code == 200, address
    assert WORD in (await datasette.client.get(f"/{CONCEALED}/-/session/s1", cookies=jar)).text
    own = "/-/query" if compat.IS_1 else ""
    for address in (f"{own}.json?", f"{own}.csv?", f"{own}?", "/schema_version.json?_where=1&"):
        answer = await datasette.client.get(f"/{CONCEALED}{address}sql=select+content+from+messages", cookies=jar)
        assert answer.status_code == 403, address
        assert WORD not in answer.text
