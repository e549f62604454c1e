"""A session that stands in several stores is counted once: which copy counts, and what sessions are called.

Two rows are the same session when they agree in id and start. Usage without a session row belongs to the
session of its id, if there is one. The copy that counts is the one with more of the record: more messages,
then the later activity, then more tokens, then the higher cost; of copies that agree in all of that, the one
whose path comes first. Nothing is put together from several copies.
"""

from __future__ import annotations

from collections.abc import Collection

from state_ledger.sqlite import Connection


def settle(books: Connection, visible: Collection[int]) -> None:
    """Decides among the visible stores; of the others nothing is looked at, and nothing can show.

    Sets `counted`, `instead` (the copy that counts in the place of this one) and `name` of `session`.
    """
    listed = ", ".join(map(str, sorted(visible))) or "NULL"
    began = (
        "coalesce(s.began, (SELECT min(o.began) FROM session AS o WHERE o.id = s.id AND o.began IS NOT NULL"
        f" AND o.store IN ({listed})))"
    )
    books.execute("UPDATE session SET counted = 1, instead = NULL, name = id")
    # Most sessions stand in one store: only ids that occur twice are looked at.
    books.execute("DROP TABLE IF EXISTS temp.twice")
    books.execute(
        f"CREATE TEMP TABLE twice AS SELECT s.key, s.id, s.store, {began} AS began, s.messages, s.last_active,"
        " s.processed_tokens, s.cost_usd, t.path FROM session AS s JOIN store AS t ON t.number = s.store"
        f" WHERE s.store IN ({listed}) AND s.id IN (SELECT id FROM session WHERE store IN ({listed})"
        " GROUP BY id HAVING count(*) > 1)"
    )
    books.execute(
        "WITH ranked AS (SELECT key, first_value(key) OVER (PARTITION BY id, began ORDER BY messages DESC,"
        " last_active DESC, processed_tokens DESC, cost_usd DESC, path) AS best FROM temp.twice)"
        " UPDATE session SET counted = 0, instead = (SELECT best FROM ranked WHERE ranked.key = session.key)"
        " WHERE key IN (SELECT key FROM ranked WHERE key <> best)"
    )
    # Different sessions of one id, as jobs of two profiles that start in the same second have them.
    books.execute(
        "UPDATE session SET name = (SELECT t.name FROM store AS t WHERE t.number = session.store) || ':' || id"
        f" WHERE store IN ({listed}) AND id IN (SELECT id FROM temp.twice GROUP BY id HAVING count(DISTINCT began) > 1)"
    )
    books.execute("DROP TABLE temp.twice")
