"""Production with an environment whose own tables stand beside it, made without an engine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache

from tests.running.production import as_json, change, placed, shop_in_production
from tests.running.standing_tables import day, leased, new_folder, put

from infold import api
from infold.core.definition import digest_of
from infold.core.environment import Environment, OwnTable
from infold.core.project import Project
from infold.core.record import Outcome, Receipt
from infold.core.trace import CellChange, Trace
from infold.declare.definitions import definitions_of
from infold.running.table_names import locations_and_files

QUERY = ("models/daily.sql", "count(*) AS sessions", "count(events) AS sessions")
MORE = ("models/sessions.sql", "AS entry_url", "AS entry_url, max(amount) AS dearest")
OWN = {"daily": "daily__00000001", "sessions": "sessions__00000002"}


def with_environment(
    shop: Project,
    *changes: tuple[str, str, str],
    own: Mapping[str, Mapping[str, int]] = {"daily": {"sessions": 1}},
) -> Project:
    """
    An environment by changed files; of ``own`` models it has tables, by these inputs.

    In each own table the second of the two days has other content, and there is a third one.
    """
    change(shop, *changes)
    declared = api.open_project(shop.root, "prod", declared=True)
    definitions = definitions_of(declared)
    digests = {model: digest_of(one) for model, one in definitions.items()}
    cells = (_cell(0, 7), _cell(1, 9), _cell(2, 1))
    with leased(shop, "env") as book:
        base = {model: one.definition for model, one in book.traces().items()}
        run, now = f"env{len(book.runs(100))}", api.now()
        book.begin_run(run, "run --env dev", 0, {})
        by_digest = {digests[model]: one for model, one in definitions.items()}
        book.keep_definitions(by_digest, digests, {}, environment="dev")
        tables = tuple(
            OwnTable(model, OWN[model], model, digests[model], base.get(model, "")) for model in own
        )
        book.put_environment(Environment("dev", "me@here", now, None, now, now, tables))
        for seq, (model, inputs) in enumerate(own.items()):
            step, key, snapshot = f"{run}-{seq}", OWN[model], 200 + seq
            book.begin_step(run, step, seq, key, "build", {})
            trace = Trace(key, declared[model].fingerprint, dict(inputs), definition=digests[model])
            book.finish_step(step, Outcome(key, 1, trace, cells, whole=True, snapshot=snapshot))
            put(shop, key, step, snapshot)
        book.remember_locations(locations_and_files(api.lake_of(shop), [OWN[name] for name in own]))
        book.finish_run(run, "done", Receipt())
    return declared


def put_environment(shop: Project) -> None:
    """The same with another query of ``daily``, in the place of a shop in production."""
    placed(_environment(), shop.root)


def put_promoted(shop: Project) -> str:
    """And promoted; the table that is kept."""
    placed(_promoted(), shop.root)
    [kept] = api.ledger_of(shop).swaps()[0].kept.values()
    assert kept is not None
    return kept


@cache
def _environment() -> Project:
    shop = shop_in_production(new_folder())
    with_environment(shop, QUERY)
    return shop


@cache
def _promoted() -> Project:
    shop = placed(_environment(), new_folder())
    assert as_json(shop, "promote", "dev", "--yes")["done"]
    return shop


def _cell(number: int, content: int) -> CellChange:
    at = day(number)
    return CellChange(at, 3, 0, 0, 3, 0, content, at.start + (number + 1) * 1_000)


def at(shop: Project, names: Sequence[str]) -> dict[str, str | None]:
    """Where some tables are."""
    return {name: api.lake_of(shop).location(name) for name in names}
