"""A cumulative table of users over sessions that move, merge and vanish: one row for each key.

Small drawn cases run from the files to the users. Many other users do not
change, so that a run folds, and what it reads of them can be counted.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.spark.cumulative.clicks_by_user import CLICKS, CROWD, SESSIONS, SOURCE, USERS, put
from tests.spark.events.clicks_project import NOW, ClicksProject, shop_with

from infold import api
from infold.core.interval import parse_instant_text
from infold.core.plan import Action
from infold.core.record import Receipt
from infold.spark import key_filter

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

ANN = ("ann", 2, 3, 6, "2024-03-02 09:00", "2024-03-05 12:00", "/a", "/c")

FIRST = (
    "1,ann,2024-03-02 09:00:00,/a,1",
    "2,ann,2024-03-02 09:20:00,/b,2",
    "3,ann,2024-03-05 12:00:00,/c,3",
)


@pytest.fixture
def shop(tmp_path: Path, warehouse: Path, spark: SparkSession) -> Iterator[ClicksProject]:
    """Clicks, sessions, users, and what a crowd and Ann did; in the end all tables are right."""
    made = shop_with(tmp_path, warehouse, CLICKS, SOURCE)
    made.model("sessions", SESSIONS)
    made.model("users", USERS)
    put(made, "crowd.csv", *(f"c{n},u{n:02},2024-03-01 10:00:00,/,1" for n in range(CROWD)))
    put(made, "ann.csv", *FIRST)
    made.run()
    assert user(made, "ann") == ANN
    yield made
    assert made.proven()


def user(shop: ClicksProject, name: str | None, table: str = "users") -> tuple[Any, ...] | None:
    """The one row of a user; all others are those of the crowd as they always were."""
    rows = shop.rows(table)
    others = [row for row in rows if str(row[0]).startswith("u")]
    assert [row[1] for row in others] == [1] * CROWD
    found = [row for row in rows if row[0] == name]
    assert len(found) <= 1
    return found[0] if found else None


def folded(shop: ClicksProject, model: str = "users") -> Receipt:
    """What a run did to the users, which must have been a fold."""
    project = api.open_project(shop.root)
    result = api.run(project, as_of=parse_instant_text(NOW))
    [(step, receipt)] = [(s, r) for s, r in result.steps if s.model == model]
    assert step.action is Action.FOLD
    return receipt


class TestSessionsOfAUser:
    """Changes to sessions show in their user's row, and in no other row."""

    def test_a_late_event_moves_a_session_to_the_day_before(self, shop: ClicksProject) -> None:
        """A late event gives the session another id, day
        and start, and its user an earlier first time.
        """
        put(shop, "late.csv", "0,ann,2024-03-01 23:50:00,/z,5", "9,ann,2024-03-02 00:15:00,/y,1")
        folded(shop)
        assert user(shop, "ann") == ("ann", 3, 5, 12, "2024-03-01 23:50", *ANN[5:6], "/z", "/c")

        put(shop, "later.csv", "8,ann,2024-03-01 23:30:00,/x,1")
        receipt = folded(shop)
        assert user(shop, "ann") == ("ann", 3, 6, 13, "2024-03-01 23:30", *ANN[5:6], "/x", "/c")
        # one session came, one is gone, one user is stored; the other sessions are not read
        assert (receipt.written, receipt.removed, receipt.read) == (1, 1, 3)

    def test_two_sessions_merge(self, shop: ClicksProject) -> None:
        """When two sessions merge, the user has one session less and one event more."""
        put(shop, "more.csv", "4,ann,2024-03-05 12:50:00,/d,1")
        folded(shop)
        assert user(shop, "ann") == ("ann", 3, 4, 7, *ANN[4:5], "2024-03-05 12:50", "/a", "/d")
        put(shop, "between.csv", "5,ann,2024-03-05 12:25:00,/e,1")
        folded(shop)
        assert user(shop, "ann") == ("ann", 2, 5, 8, *ANN[4:5], "2024-03-05 12:50", "/a", "/d")

    def test_the_session_with_the_first_time_is_removed(self, shop: ClicksProject) -> None:
        """When the session with a user's first time is removed, the values come from the next
        one.
        """
        put(shop, "ann.csv", FIRST[2])
        folded(shop)
        seen = "2024-03-05 12:00"
        assert user(shop, "ann") == ("ann", 1, 1, 3, seen, seen, "/c", "/c")

    def test_a_user_loses_all_sessions_and_gets_one_again(self, shop: ClicksProject) -> None:
        """A user without sessions has no row, and one with sessions again has one."""
        shop.drop("ann.csv")
        assert folded(shop).removed == 1
        assert user(shop, "ann") is None
        put(shop, "ann.csv", *FIRST)
        assert folded(shop).written == 1
        assert user(shop, "ann") == ANN

    def test_one_of_two_sessions_with_equal_times_is_removed(self, shop: ClicksProject) -> None:
        """Of two users whose sessions begin and arrive at
        the same time, only the deleted one disappears.
        """
        put(shop, "twins.csv", "t1,ann,2024-03-07 08:00:00,/t,1", "t2,eve,2024-03-07 08:00:00,/t,1")
        folded(shop)
        put(shop, "twins.csv", "t1,ann,2024-03-07 08:00:00,/t,1")
        assert folded(shop).removed == 1
        assert user(shop, "ann") == ("ann", 3, 4, 7, ANN[4], "2024-03-07 08:00", "/a", "/t")
        assert user(shop, "eve") is None

    def test_an_event_is_corrected(self, shop: ClicksProject) -> None:
        """A replaced file that changes one event changes the user's row as a rebuild would."""
        put(shop, "ann.csv", FIRST[0], "2,ann,2024-03-02 09:20:00,/b,7.5", FIRST[2])
        folded(shop)
        assert user(shop, "ann") == ("ann", 2, 3, 11.5, *ANN[4:])

    def test_a_repeated_delivery_changes_nothing(self, shop: ClicksProject) -> None:
        """A repeated delivery changes no session, so no user is read."""
        version = shop.version("users")
        put(shop, "again.csv", *FIRST)
        result = api.run(api.open_project(shop.root), as_of=parse_instant_text(NOW))
        assert [step.model for step, _ in result.steps] == ["clicks"]
        assert shop.version("users") == version


class TestKeys:
    """Keys are ordinary values: NULL, empty texts, expressions. A key without rows has no row."""

    @pytest.fixture(autouse=True)
    def as_for_a_large_table(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Rows to remove are found by a filter."""
        monkeypatch.setattr(key_filter, "pays", lambda *_: True)

    def test_null_is_a_key(self, shop: ClicksProject) -> None:
        """Rows without a user have the key NULL, which is neither an empty text nor the text
        NULL.
        """
        shop.model("pages", _of("clicks", "url"))
        put(shop, "odd.csv", "n1,u00,2024-03-03 10:00:00,,4", "n2,u00,2024-03-03 11:00:00,NULL,1")
        shop.run()
        assert _as_dict(shop, "pages")[None] == (1, 4)
        assert _as_dict(shop, "pages")["NULL"] == (1, 1)

        put(shop, "more.csv", "n3,u01,2024-03-04 10:00:00,,6", "n4,u01,2024-03-04 11:00:00,/n,1")
        receipt = folded(shop, "pages")
        assert _as_dict(shop, "pages")[None] == (2, 10)
        assert (receipt.written, receipt.removed) == (2, 1)
        shop.drop("odd.csv")
        folded(shop, "pages")
        assert _as_dict(shop, "pages")[None] == (1, 6)
        shop.drop("more.csv")
        folded(shop, "pages")
        assert None not in _as_dict(shop, "pages")

    def test_a_new_key_reads_only_the_changed_day(self, shop: ClicksProject) -> None:
        """A new key is built from the changed day and the
        table; sessions of other users are not scanned.
        """
        put(shop, "zoe.csv", "z1,zoe,2024-03-09 10:00:00,/z,1", "z2,zoe,2024-03-09 12:00:00,/y,1")
        receipt = folded(shop)
        assert (receipt.read, receipt.scanned) == (2, 2 + CROWD + 1)
        assert user(shop, "zoe") is not None
        explained = api.explain(api.open_project(shop.root), "users")
        follows = "follows from stored states: 0 unchanged rows of sessions read"
        assert explained.inputs[0].mapping == "the rows of the same user_id"
        but = "keys that lose a least or greatest value"
        assert explained.notes == (("folds", f"by user_id: {follows}, but for {but}"),)

    def test_a_row_moves_from_key_to_key(self, shop: ClicksProject) -> None:
        """A row that moves from one key to another updates both keys."""
        shop.model("pages", _of("clicks", "upper(url)"))
        shop.run()
        assert _as_dict(shop, "pages")["/B"] == (1, 2)
        put(shop, "ann.csv", FIRST[0], "2,ann,2024-03-02 09:20:00,/q,2", FIRST[2])
        receipt = folded(shop, "pages")
        assert (receipt.written, receipt.removed) == (1, 1)
        assert "/B" not in _as_dict(shop, "pages")
        assert _as_dict(shop, "pages")["/Q"] == (1, 2)

    def test_an_unchanged_result_is_not_written(self, shop: ClicksProject) -> None:
        """A change that the query does not show writes nothing, and no downstream table is due."""
        shop.model("pages", _of("clicks", "user_id"))
        shop.run()
        version = shop.version("pages")
        put(shop, "ann.csv", FIRST[0], "2,ann,2024-03-02 09:21:00,/b,2", FIRST[2])
        receipt = folded(shop, "pages")
        assert (receipt.written, receipt.commits, receipt.cells_cut_off) == (0, 0, 1)
        assert shop.version("pages") == version

    def test_having_adds_and_removes_keys(self, shop: ClicksProject) -> None:
        """A key is in the table while its rows pass HAVING."""
        shop.model("pages", _of("sessions", "user_id", "events") + " HAVING count(*) > 1")
        shop.run()
        assert _as_dict(shop, "pages") == {"ann": (2, 3)}
        put(shop, "more.csv", "m1,u03,2024-03-06 10:00:00,/,1")
        folded(shop, "pages")
        assert _as_dict(shop, "pages") == {"ann": (2, 3), "u03": (2, 2)}
        shop.drop("more.csv")
        folded(shop, "pages")
        assert _as_dict(shop, "pages") == {"ann": (2, 3)}


def _of(table: str, key: str, value: str = "amount") -> str:
    head = "---\nmaterialization: cumulative_aggregate\n---\n"
    return f"{head}SELECT {key} AS k, count(*) AS n, sum({value}) AS v FROM {table} GROUP BY {key}"


def _as_dict(shop: ClicksProject, table: str) -> dict[Any, tuple[Any, ...]]:
    rows = shop.rows(table)
    assert len({row[0] for row in rows}) == len(rows)
    return {row[0]: row[1:] for row in rows}
