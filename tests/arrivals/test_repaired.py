"""Oracle 2 without Spark, where ledgers and tables are lost or set back; `repair` mends it."""

from __future__ import annotations

import sqlite3
import tempfile
from collections.abc import Collection
from contextlib import closing
from copy import deepcopy
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.arrivals.borders import Borders
from tests.arrivals.branches import BRANCHES, STEADY
from tests.arrivals.dry import Stored
from tests.arrivals.environments import COMMANDS, NAMES, Act, BranchPlay, acts
from tests.arrivals.programs import Op
from tests.crash.scenario import living

from infold.api.repairing import look_at_ledger, repair_ledger
from infold.ledger.database import close_all

pytestmark = pytest.mark.deep

EXAMPLES = settings().max_examples // 5

LOSSES = ("ledger gone", "ledger older", "ledger older", "table older", "rows gone")


@dataclass(frozen=True)
class Loss:
    """What happens to ledger or tables ``of`` some, by a seed; the repair may die before it."""

    kind: str
    seed: int
    deaths: tuple[int, ...] = ()
    of: frozenset[str] = frozenset()


def losses_of(*kinds: str) -> st.SearchStrategy[Loss]:
    """Losses of some kinds, with repairs that may die twice."""
    deaths = st.lists(st.integers(1, 25), max_size=2).map(tuple)
    return st.builds(Loss, st.sampled_from(kinds), st.integers(0, 99), deaths)


_KEYS = {
    "cells": "SELECT DISTINCT table_name AS rowid_of FROM cells",
    "versions": "SELECT table_name AS rowid_of FROM versions",
    "traces": "SELECT DISTINCT model AS rowid_of FROM trace_inputs",
}
_DELETE = {
    "cells": "DELETE FROM cells WHERE table_name = ?",
    "versions": "DELETE FROM versions WHERE table_name = ?",
    "traces": "DELETE FROM traces WHERE model = ?",
}


def lose_rows(ledger: Path, random: Random, of: Collection[str] = ()) -> None:
    """Rows of one table of the ledger are gone, about one of some: those that sums tell of."""
    with closing(sqlite3.connect(ledger)) as file, file:
        table = random.choice(("cells", "versions", "traces"))
        kept = {key for (key,) in file.execute("SELECT table_key FROM kept_tables")}
        found = file.execute(f"SELECT rowid_of FROM ({_KEYS[table]})")
        keys = [key for (key,) in found if key not in kept]  # no sums tell of those
        keys = [key for key in keys if not of or key in of]
        if keys:
            file.execute(_DELETE[table], (random.choice(keys),))


@dataclass
class Losing(BranchPlay):
    """Loses something now and then, and repairs it: traces tell the truth then, too."""

    losses: list[Loss | None] = field(default_factory=list)
    kept: list[tuple[bytes, dict[str, Stored]]] = field(default_factory=list)
    """The ledger and the tables after each command."""

    @property
    def file(self) -> Path:
        """The ledger's file."""
        return self.folder / ".infold" / "ledger.db"

    def _operate(self, act: Act) -> None:
        super()._operate(act)
        if not self.file.exists() or act.op.kind not in COMMANDS:
            return
        loss = self.losses.pop(0) if self.losses else None
        if loss is not None and self.kept:
            self.log.append(f"{loss}")
            self._lose(loss)
        close_all()
        self.kept.append((self.file.read_bytes(), deepcopy(dict(self.memory.tables))))

    def _lose(self, loss: Loss) -> None:
        close_all()
        random = Random(loss.seed)
        ledger, tables = random.choice(self.kept)
        if loss.kind == "rows gone":
            lose_rows(self.file, random, loss.of)
        elif loss.kind == "table older":
            for name in sorted(tables.keys() & self.memory.tables.keys()):
                if random.random() < 0.3:
                    self.memory.tables[name] = deepcopy(tables[name])
        else:
            for suffix in ("", "-wal", "-shm"):
                Path(f"{self.file}{suffix}").unlink(missing_ok=True)
            if loss.kind == "ledger older":
                self.file.write_bytes(ledger)
        project = self.declared()
        for at in loss.deaths:
            with living(at):
                repair_ledger(project)
        found = repair_ledger(project, drop_orphans=True)
        self.log.append(f"  {found}")
        again = look_at_ledger(project)
        assert not again.changes, again
        assert not again.unrecorded, again
        self._after_death()
        self._take_applied()
        self.borders = Borders(lost=True)  # a table that is built again is of one definition
        self.ran = {name: self.ran[name] for name in self.ledger.environments() if name in NAMES}
        self.check_all()


@settings(max_examples=EXAMPLES * 2)
@given(
    program=acts(14, deaths=True),
    manual=st.booleans(),
    lost=st.lists(st.none() | losses_of(*LOSSES), min_size=1, max_size=8),
)
def test_a_repaired_ledger_tells_the_truth(
    program: list[Act], manual: bool, lost: list[Any]
) -> None:
    """Whatever was lost, promoted, rolled back, or run in an environment since."""
    with tempfile.TemporaryDirectory(prefix="infold-branches-") as name:
        folder = Path(name)
        play = Losing(
            BRANCHES, folder, BRANCHES.name, folder, 4, manual=manual, losses=[None, *lost]
        )
        with play.outside():
            play.act([Act(Op("arrive", 542987)), Act(Op("apply", 1)), *program])
            play.act([Act(Op("apply", 1)), Act(Op("run", 1))])


SEEDS = st.integers(0, 2**20)
REPLACED = [
    (model, version)
    for model in ("stays", "daily", "rolling", "totals", "people")
    for version, table in enumerate(BRANCHES.tables[model])
    if version not in (0, *STEADY.get(model, ()))  # those changes are not promoted
    and "backfill_limit" not in table.text  # one run does not finish those
]
"""What a promote puts in the place of the first version; each reads tables of the project."""
QUIET = st.builds(Act, st.builds(Op, st.sampled_from(("arrive", "advance", "run")), SEEDS))


@settings(max_examples=EXAMPLES * 2)
@given(
    change=st.sampled_from(REPLACED),
    seed=SEEDS,
    lost=SEEDS,
    between=st.lists(QUIET, max_size=2),
)
def test_nothing_goes_back_over_rows_that_are_gone(
    change: tuple[str, int], seed: int, lost: int, between: list[Act]
) -> None:
    """
    Rows of the ledger are lost between a promote and its rollback, in what the replaced table
    reads: then it may not come back, as it names versions that come a second time.

    Programs that are drawn freely have these three in a row too seldom.
    """
    name = Random(seed).choice(NAMES)  # of the environment, as the commands draw it
    model, version = change
    with tempfile.TemporaryDirectory(prefix="infold-branches-") as folder:
        play = Losing(BRANCHES, Path(folder), BRANCHES.name, Path(folder), 4)
        with play.outside():
            play.act([Act(Op("arrive", 542987)), Act(Op("apply", 1))])
            read = play.project.upstream([model])
            play.change_of(name, {model: version})
            play.act([Act(Op("env_run", seed))])
            play.losses = [Loss("rows gone", lost, of=read)]
            play.act([Act(Op("promote", seed)), *between, Act(Op("rollback", 1))])
            play.act([Act(Op("run", 1))])
            assert play.done["promote"] == 1
