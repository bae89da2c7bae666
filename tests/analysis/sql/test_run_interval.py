"""``@start_ts`` and the like in queries."""

from __future__ import annotations

import pytest

from infold.analysis.sql.run_interval import NAMES, replaced
from infold.messages.errors import InfoldError


def test_the_names_stand_for_all_time() -> None:
    """Only behind the front matter, and only where they are names: not in texts and comments."""
    source = "@start_ds\nSELECT '@end_ts' FROM t -- @x\nWHERE ts >= @start_ts AND d < @END_DS"

    text, used = replaced("m.sql", source, 10)

    assert used == ("@start_ts", "@end_ds")
    assert text == (
        "@start_ds\nSELECT '@end_ts' FROM t -- @x\n"
        f"WHERE ts >= {NAMES['start_ts']} AND d < {NAMES['end_ds']}"
    )


def test_a_query_without_any_is_left_as_it_is() -> None:
    """The very same text."""
    assert replaced("m.sql", "SELECT a FROM t", 0) == ("SELECT a FROM t", ())


def test_any_other_name_is_a_mistake_at_its_place() -> None:
    """It would be a session variable of Spark, which nobody sets."""
    with pytest.raises(InfoldError) as found:
        replaced("m.sql", "SELECT a FROM t WHERE b = @yesterday", 0)

    assert found.value.slug == "unknown-variable"
    assert found.value.at is not None
    assert found.value.at.text[found.value.at.column - 1 :] == "@yesterday"
