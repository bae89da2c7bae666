"""The list of source formats, and that a registry which lacks one is refused."""

from __future__ import annotations

import pytest

from infold.core.formats import FORMATS, Format, complete, format_of_path


def test_a_registry_without_a_format_is_refused() -> None:
    """A format that nothing reads is found when the program is imported, not with a user's file."""
    half: dict[Format, str] = {
        format_: format_.value for format_ in Format if format_ is not Format.JSON
    }

    with pytest.raises(TypeError, match="lacks json"):
        complete(half)
    assert complete({**half, Format.JSON: "json"})[Format.JSON] == "json"


@pytest.mark.parametrize(
    ("path", "format_"),
    [
        ("in/a.csv", Format.CSV),
        ("in/*.TSV.gz", Format.CSV),
        ("in/a.ndjson", Format.JSON),
        ("in/**/*.parquet", Format.PARQUET),
        ("in/a.avro", Format.AVRO),
        ("in/a.ORC", Format.ORC),
        ("in/a.json.zst", Format.JSON),
        ("in/a.xml", None),
        ("in/a", None),
        ("in/csv", None),
    ],
)
def test_the_ending_of_a_path_says_the_format(path: str, format_: Format | None) -> None:
    """An ending that no format has means none: it is never taken for one."""
    suffixes = [suffix for traits in FORMATS.values() for suffix in traits.suffixes]
    assert format_of_path(path) is format_
    assert len(suffixes) == len(set(suffixes))
