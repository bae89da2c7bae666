"""Which file Spark could not read, as an error that says what to do; without a session."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from infold.core.formats import Format
from infold.core.model import Drift, Source
from infold.core.project import Project
from infold.core.target import Target
from infold.messages import run_errors
from infold.messages.errors import InfoldError
from infold.spark.reading.failures import naming_files, unread_file

SOURCE = Source("raw.rows", Format.PARQUET, (), path="landing/*.parquet")
MESSAGE = (
    "Job aborted: [FAILED_READ_FILE.NO_HINT] Encountered error while reading file {}.  "
    "SQLSTATE: KD001\n\tat org.apache\nCaused by: java.io.IOException: it is cut off\n"
)


@pytest.mark.parametrize(
    ("named", "location"),
    [
        ("file:///landing/a%20b%25.parquet", "/landing/a b%.parquet"),
        ("file:/landing/a.parquet", "/landing/a.parquet"),
        ("s3a://bucket/a%20b.parquet", "s3a://bucket/a b.parquet"),
    ],
)
def test_the_file_that_a_message_names(named: str, location: str) -> None:
    """With the reason that is deepest."""
    assert unread_file(MESSAGE.format(named)) == (location, "it is cut off")
    assert unread_file("[DIVIDE_BY_ZERO] Division by zero.") is None


@pytest.mark.parametrize("by", ["a look", "reading"])
@pytest.mark.parametrize("aside", [False, True])
def test_what_is_advised(tmp_path: Path, by: str, *, aside: bool) -> None:
    """To have such files set aside, unless they are: then it is one that had been ingested."""
    file = tmp_path / "landing" / "a.parquet"
    file.parent.mkdir()
    file.write_bytes(b"")
    source = replace(SOURCE, on_unreadable=Drift.SET_ASIDE) if aside else SOURCE
    project = Project("p", tmp_path, None, {source.name: source}, (), Target("dev"))
    looked = run_errors.unreadable_file(path="landing/a.parquet", why="it is cut off")
    failure = looked if by == "a look" else RuntimeError(MESSAGE.format(file.as_uri()))
    with pytest.raises(InfoldError) as raised, naming_files(project, source):
        raise failure

    assert raised.value.slug == "unreadable-file"
    assert raised.value.facts == (("file", "landing/a.parquet"), ("why", "it is cut off"))
    assert ("on_unreadable: set_aside" in raised.value.todo) is not aside
