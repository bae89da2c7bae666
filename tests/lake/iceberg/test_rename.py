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
        """Tables get the names that others had, and those are kept under other names."""
        tables = {name: put(name, [], None) for name in ("daily", "daily__b", "week", "week__b")}

        done = lake.rename(
            [
                Renaming("daily", "daily__a", tables["daily"]),
                Renaming("daily__b", "daily", tables["daily__b"]),
                Renaming("week", "week__a", tables["week"]),
                Renaming("week__b", "week", tables["week__b"]),
            ]
        )

        assert done
        assert names(lake) == {
            "daily": tables["daily__b"],
            "daily__a": tables["daily"],
            "week": tables["week__b"],
            "week__a": tables["week"],
        }

    def test_two_tables_change_places(self, lake: IcebergLake, put: Put) -> None:
        """Two tables may get each other's name: no order of the renamings collides."""
        one, other = put("one", [], None), put("other", [], None)

        assert lake.rename([Renaming("one", "other", one), Renaming("other", "one", other)])

        assert names(lake) == {"one": other, "other": one}

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

    def test_without_a_catalog_nothing_can_be_renamed(self, tmp_path: Path) -> None:
        """Without a catalog there is no table to rename, and none is made."""
        lake = IcebergLake(sqlite_catalog(tmp_path / "none.db"), "shop")

        assert not lake.rename([Renaming("daily", "daily__a", "x")])
        assert list(tmp_path.iterdir()) == []

    def test_tables_of_other_namespaces_stay(self, lake: IcebergLake, put: Put) -> None:
        """A table of the same name in another namespace is not renamed."""
        put("daily", [], None, namespace="other")

        assert not lake.rename([Renaming("daily", "daily__a", put("daily", [], None) + "x")])
        assert lake.rename([Renaming("daily", "daily__a", names(lake)["daily"])])

        assert "daily" in lake.catalog.names("other")

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

    def test_a_reader_of_two_names_never_sees_a_mix(self, lake: IcebergLake, put: Put) -> None:
        """
        Whoever finds two tables by one look into the catalog sees both before a swap or after it.

        It polls during 50 swaps of both.
        """
        old = {name: put(f"{name}", [], None) for name in ("daily", "week")}
        new = {name: put(f"{name}__b", [], None) for name in ("daily", "week")}
        seen: set[tuple[str | None, str | None]] = set()
        stop = threading.Event()

        def poll() -> None:
            while not stop.is_set():
                found = lake.moved_tables({"daily": "", "week": ""})
                seen.add((found["daily"], found["week"]))

        reader = threading.Thread(target=poll)
        reader.start()
        for _ in range(50):
            assert lake.rename(
                [
                    renaming
                    for name in old
                    for renaming in (
                        Renaming(name, f"{name}__b", old[name]),
                        Renaming(f"{name}__b", name, new[name]),
                    )
                ]
            )
            old, new = new, old
        stop.set()
        reader.join()

        assert seen <= {tuple(old.values()), tuple(new.values())}
        assert seen
