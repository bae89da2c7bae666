"""Files that a table needs and that are gone, or have nothing in them, as of a broken disk."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from tests.lake.iceberg.conftest import Warehouse

from infold.lake.iceberg.missing_files import missing_data_files
from infold.lake.stores.places import local_path


def files_of(folder: Path) -> tuple[str, dict[str, str]]:
    """The metadata of a table with one row, and its other files, each by what it is."""
    table = Warehouse(folder).write("events", pa.table({"n": pa.array([1])}))
    snapshot = table.current_snapshot()
    assert snapshot is not None
    data = [str(path) for path in (folder / "shop" / "events" / "data").iterdir()]
    manifests = [str(path) for path in (folder / "shop" / "events" / "metadata").glob("*-m0.avro")]
    files = {"list": snapshot.manifest_list, "manifest": manifests[0], "data": data[0]}
    return table.metadata_location, {what: str(local_path(at)) for what, at in files.items()}


DAMAGE: dict[str, Callable[[Path], object]] = {
    "gone": Path.unlink,
    "empty": lambda file: file.write_bytes(b""),
    "half": lambda file: file.write_bytes(file.read_bytes()[: file.stat().st_size // 2]),
    "other": lambda file: file.write_bytes(b"something else, which is longer than a number is"),
}


@pytest.mark.parametrize("how", DAMAGE)
@pytest.mark.parametrize("what", ["list", "manifest", "data"])
def test_what_is_gone_is_named(tmp_path: Path, what: str, how: str) -> None:
    """A damaged file that is there is none of them: who reads the table says what is wrong."""
    from pyiceberg import manifest

    location, files = files_of(tmp_path)
    assert missing_data_files(location) == ()
    DAMAGE[how](Path(files[what]))
    manifest.clear_manifest_cache()
    found = [str(local_path(at)) for at in missing_data_files(location)]
    assert found == ([files[what]] if how in ("gone", "empty") else [])
