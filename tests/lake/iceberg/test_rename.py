"""Tables get other names in the catalog, all in one transaction."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
from tests.lake.conftest import Put

from infold.core.swap import Renaming
from infold.lake.iceberg.sqlite_catalog import sqlite_catalog
from infold.lake.iceberg.tables import IcebergLake


def names(lake: IcebergLake) -> dict[str, str]:
    """The tables of the namespace, and where they are."""
    return dict(lake.catalog.locations(lake.namespace))


class TestRenamed:
    """All renamings are one transaction: all happen, or none."""

    def test_two_pairs_change_names(self, lake: IcebergLake, put: Put) -> None:
        """
        Tables get the names that others had, and those are kept under other names. Two may get each
        other's name. Whoever finds two tables by one look sees both before a swap or after it: it
        polls during 50 swaps.
        """
        at = {name: put(name, [], None) for name in ("daily", "daily__b", "week", "week__b")}
        seen: set[tuple[str | None, str | None]] = set()
        stop = threading.Event()

        def poll() -> None:
            while not stop.is_set():
                found = lake.moved_tables({"daily": "", "week": ""})
                seen.add((found["daily"], found["week"]))

        def rename(*pairs: tuple[str, str]) -> None:
            assert lake.rename([Renaming(name, to, at[name]) for name, to in pairs])
            moved = {to: at.pop(name) for name, to in pairs}
            at.update(moved)
            assert names(lake) == at

        reader = threading.Thread(target=poll)
        reader.start()
        places = {(at["daily"], at["week"]), (at["daily__b"], at["week__b"])}
        for _ in range(50):
            both = [(name, f"{name}__b") for name in ("daily", "week")]
            rename(*(pair for one, other in both for pair in ((one, other), (other, one))))
        stop.set()
        reader.join()

        assert seen
        assert seen <= places
        kept = [(name, f"{name}__a") for name in ("daily", "week")]
        rename(*kept, ("daily__b", "daily"), ("week__b", "week"))

    @pytest.mark.parametrize(
        "wrong",
        [
            Renaming("week", "week__a", "elsewhere"),
            Renaming("gone", "gone__a", "elsewhere"),
            Renaming("week", "taken", ""),
        ],
        ids=["moved", "gone", "taken"],
    )
    def test_one_that_moved_stops_all(self, lake: IcebergLake, put: Put, wrong: Renaming) -> None:
        """If one table moved or is gone, or another has its new name, nothing is renamed."""
        before = {name: put(name, [], None) for name in ("daily", "week", "taken")}
        one = wrong if wrong.location else Renaming(wrong.table, wrong.to, before[wrong.table])

        assert not lake.rename([Renaming("daily", "daily__a", before["daily"]), one])

        assert names(lake) == before

    def test_tables_of_other_namespaces_stay(
        self, lake: IcebergLake, put: Put, tmp_path: Path
    ) -> None:
        """One of the same name in another namespace is not renamed; without a catalog none is."""
        put("daily", [], None, namespace="other")

        assert not lake.rename([Renaming("daily", "daily__a", put("daily", [], None) + "x")])
        assert lake.rename([Renaming("daily", "daily__a", names(lake)["daily"])])

        assert "daily" in lake.catalog.names("other")
        none = IcebergLake(sqlite_catalog(tmp_path / "none.db"), "shop")
        assert not none.rename([Renaming("daily", "daily__a", "x")])
        assert not (tmp_path / "none.db").exists()

    def test_of_many_that_swap_the_same_names_one_wins_each_time(
        self, lake: IcebergLake, put: Put
    ) -> None:
        """Of renamings at the same time that expect the same state, exactly one happens."""
        at = {name: put(name, [], None) for name in ("a", "b")}
        wins: list[bool] = []

        def swap() -> None:
            wins.append(lake.rename([Renaming("a", "b", at["a"]), Renaming("b", "a", at["b"])]))

        threads = [threading.Thread(target=swap) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

        assert sorted(wins) == [False] * 7 + [True]
        assert names(lake) == {"a": at["b"], "b": at["a"]}
