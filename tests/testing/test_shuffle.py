"""Other orders and cuts end with the same rows in the same sources."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from infold.core.unit_tests import Arrival, Change, Delivery, Entry, UnitTest
from infold.messages.errors import Spot
from infold.testing.play import Change_, variants

AT = Spot("tests/a.md")


def delivery(change: Change, of: str, file: str, *rows: int) -> Delivery:
    """A changed file with some rows."""
    return Delivery(change, of, file, AT, rows=tuple({"n": row} for row in rows))


@st.composite
def drawn_tests(draw: st.DrawFn) -> UnitTest:
    """Files that come, are replaced and go, in some arrivals."""
    there: set[tuple[str, str]] = set()
    arrivals = []
    for number in range(draw(st.integers(1, 4))):
        changes = []
        for _ in range(draw(st.integers(0, 3))):
            key = draw(st.sampled_from(["a", "b"])), draw(st.sampled_from(["x", "y", "z"]))
            kinds = [Change.REPLACE, Change.DELETE] if key in there else [Change.ADD]
            change = draw(st.sampled_from(kinds))
            there.discard(key) if change is Change.DELETE else there.add(key)
            rows = draw(st.lists(st.integers(0, 9), max_size=4))
            changes.append(delivery(change, *key, *(rows if change is not Change.DELETE else ())))
        owners = draw(st.lists(st.sampled_from(["ann", "bob"]), max_size=2))
        actions = [draw(st.sampled_from(["add", "release"])) for _ in owners]
        made = [Entry("s", *one, AT, "", number) for one in zip(actions, owners, strict=True)]
        arrivals.append(Arrival(number + 1, AT, tuple(changes), tuple(made), clock=number))
    return UnitTest("a test", AT, tuple(arrivals))


def what_there_is(runs: Iterable[Sequence[Change_]]) -> tuple[Counter[tuple[str, Any]], list[Any]]:
    """
    The rows of each source when all is there, and the entries in their order.

    Fails where a file changes that is not there.
    """
    files: dict[tuple[str, str], Delivery] = {}
    entries = []
    for run in runs:
        for each in run:
            if isinstance(each, Entry):
                entries.append(each)
                continue
            key = each.of, each.file
            assert (each.change is Change.ADD) == (key not in files)
            files[key] = each
            if each.change is Change.DELETE:
                del files[key]
    return Counter((each.of, row["n"]) for each in files.values() for row in each.rows), entries


@given(drawn_tests(), st.integers())
def test_the_same_rows_are_there_at_the_end(test: UnitTest, seed: int) -> None:
    """Whatever the order is; a seed gives the same orders again."""
    wanted = what_there_is((*a.deliveries, *a.entries) for a in test.arrivals)

    drawn = list(variants(test, seed, 3))
    assert drawn == list(variants(test, seed, 3))
    for variant in drawn:
        assert what_there_is(variant.runs) == wanted
        assert variant.clock == test.arrivals[-1].clock
        assert len(variant.order) == len(variant.runs) + 1


def test_several_arrivals_are_also_one() -> None:
    """A build from nothing over all that is there is the first variant."""
    arrivals = tuple(
        Arrival(at, AT, (delivery(Change.ADD, "a", f"{at}", at),), clock=at) for at in (1, 2)
    )
    first = next(variants(UnitTest("a test", AT, arrivals), 0, 1))

    assert first.order == ("all at once", "run 1: a in 1 (1 row); a in 2 (1 row)")


def test_orders_are_cut_into_several_runs() -> None:
    """What comes in an order of its own comes in at least two runs, so that something is folded."""
    arrivals = tuple(
        Arrival(at, AT, (delivery(Change.ADD, "a", f"{at}", at, at),), clock=0) for at in range(3)
    )
    drawn = list(variants(UnitTest("a test", AT, arrivals), 0, 9))

    assert [len(one.runs) > 1 for one in drawn] == [False] + [True] * 9


def test_tests_that_begin_alike_share_runs() -> None:
    """What two tests have in common is split, ordered and cut alike in both."""
    given_ = Arrival(1, AT, (delivery(Change.ADD, "a", "x", *range(9)),), clock=0)
    own = (
        Arrival(2, AT, (delivery(Change.ADD, "a", "late", late),), clock=0) for late in range(30)
    )
    drawn = [list(variants(UnitTest("a test", AT, (given_, late)), 0, 1))[-1] for late in own]

    def first(part: str) -> set[Any]:
        runs = [one.runs[0] for one in drawn if {each.file for each in one.runs[0]} == {part}]
        return {tuple(each.key for each in run) for run in runs}

    assert [len(first(part)) for part in ("x_a", "x_b")] in ([1, 0], [0, 1])
