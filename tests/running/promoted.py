"""Production with an environment whose own tables stand beside it, made without an engine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from tests.running.production import change
from tests.running.standing_tables import day, put

from infold import api
from infold.core.definition_text import digest_of
from infold.core.environment import Environment, OwnTable
from infold.core.project import Project
from infold.core.record import Outcome, Receipt
from infold.core.trace import CellChange, Trace
from infold.declare.definitions import definitions_of
from infold.running.table_locations import locations_and_files

QUERY = ("models/daily.sql", "count(*) AS sessions", "count(events) AS sessions")
MORE = ("models/sessions.sql", "AS entry_url", "AS entry_url, max(amount) AS dearest")
OWN = {"daily": "daily__00000001", "sessions": "sessions__00000002"}


def with_environment(
    shop: Project,
    *changes: tuple[str, str, str],
    own: Mapping[str, Mapping[str, int]] = {"daily": {"sessions": 1}},
    name: str = "dev",
) -> Project:
    """
    An environment by changed files; of ``own`` models it has tables, by these inputs.

    In each own table the second of the two days has other content, and there is a third one.
    """
    change(shop, *changes)
    declared = api.open_project(shop.root, "prod", declared=True)
    definitions = definitions_of(declared)
    digests = {model: digest_of(one) for model, one in definitions.items()}
    book = api.ledger(shop)
    traces = book.traces()
    base = {model: one.definition for model, one in traces.items()}
    book.acquire("env")
    run = f"env{len(book.runs(100))}"
    book.begin_run(run, "run --env dev", 0, {})
    by_digest = {digests[model]: one for model, one in definitions.items()}
    book.keep_definitions(by_digest, digests, {}, environment=name)
    tables = tuple(
        OwnTable(model, OWN[model], model, digests[model], base.get(model, "")) for model in own
    )
    at = api.now()
    made = Environment(name, "me@here", at, None, at, at, tables)
    book.put_environment(made)
    for seq, (model, inputs) in enumerate(own.items()):
        step = f"{run}-{seq}"
        book.begin_step(run, step, seq, OWN[model], "build", {})
        trace = Trace(OWN[model], declared[model].fingerprint, dict(inputs))
        outcome = Outcome(
            OWN[model],
            1,
            replace(trace, definition=digests[model]),
            (_cell(0, 7), _cell(1, 9), _cell(2, 1)),
            whole=True,
            snapshot=200 + seq,
        )
        book.finish_step(step, outcome)
        put(shop, OWN[model], step, 200 + seq)
    book.remember_locations(locations_and_files(api.lake(shop), [OWN[model] for model in own]))
    book.finish_run(run, "done", Receipt())
    book.close()
    return declared


def _cell(number: int, content: int) -> CellChange:
    at = day(number)
    return CellChange(at, 3, 0, 0, 3, 0, content, at.start + (number + 1) * 1_000)


def at(shop: Project, names: Sequence[str]) -> dict[str, str | None]:
    """Where some tables are."""
    return {name: api.lake(shop).location(name) for name in names}
