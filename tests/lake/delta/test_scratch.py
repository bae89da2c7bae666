"""Scratch tables go back to what they were, as if later versions had never been."""

from __future__ import annotations

from pathlib import Path

from tests.lake.delta.made import Made

from infold.lake.delta import scratch


def test_later_versions_and_tables_are_gone(made: Made) -> None:
    """
    A table ends at the version it had, and what is committed next has the number after it.

    Checksums that Spark keeps of files of the log go with these: it would believe them.
    """
    parent = made.warehouse / "shop"
    assert scratch.versions(parent) == {}
    first = made.write("daily", {"n": [1]}, "s-1")
    kept = scratch.versions(parent)
    made.write("daily", {"n": [2]}, "s-2")
    made.write("weekly", {"n": [3]}, "s-3")
    log = made.lake.log("daily")
    assert log is not None
    later = Path(log.file(1))
    checksum = later.with_name(f".{later.name}.crc")
    checksum.write_bytes(b"crc")

    scratch.put_back(parent, kept)

    head = made.lake.metadata("daily")
    assert head is not None
    assert (dict(head.steps), made.numbers("daily")) == ({"s-1": first}, [1])
    assert made.lake.metadata("weekly") is None
    assert not checksum.exists()
    made.write("daily", {"n": [4]}, "s-4")
    assert made.numbers("daily") == [1, 4]


def test_no_table_is_left_of_none(made: Made) -> None:
    """With nothing kept, every table goes; also where there is none."""
    made.write("daily", {"n": [1]}, "s-1")

    for folder in ("shop", "none"):
        scratch.put_back(made.warehouse / folder, {})

    assert scratch.versions(made.warehouse / "shop") == {}
