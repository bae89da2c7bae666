"""
Keeping the ledger small, so that the thousandth run is as fast as the tenth.

Changes are read to find what is stale: those that every trace has read are only history.
Arrivals are only history. Of both, the newest :data:`KEEP` versions of each table stay; older
ones go, oldest first, at most :data:`BUDGET` rows in one run. A change that a trace has still to
read is never dropped. Versions, runs and steps stay for good (a few hundred bytes each: a step
that is done keeps no changes).
"""

from __future__ import annotations

from infold.ledger.query import Query

KEEP = 100
BUDGET = 20_000


def prune_history(query: Query, *, keep: int, budget: int = BUDGET) -> int:
    """Drop what no trace needs and nobody is likely to ask for; the number of rows dropped."""
    read = {name: int(version) for name, version in query.all("oldest_inputs")}
    dropped = 0
    for table, head, *_ in query.all("heads"):
        upto = head - keep
        for kind, bound in (("changes", min(upto, read.get(table, upto))), ("arrivals", upto)):
            dropped += _drop_oldest(query, kind, table, bound, budget - dropped)
    return dropped


def _drop_oldest(query: Query, kind: str, table: str, bound: int, budget: int) -> int:
    rows, upto = 0, None
    for version, count in query.all(f"old_{kind}", table_name=table, upto=bound, limit=100):
        if rows and rows + count > budget:
            break
        rows, upto = rows + count, version
    if upto is None or budget <= 0:
        return 0
    query.run(f"drop_{kind}", table_name=table, upto=upto)
    if kind == "changes":
        query.run("drop_unchanged", table_name=table, upto=upto)
    return rows
