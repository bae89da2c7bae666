"""Tables that pyiceberg writes into a store, whosever it is, by infold's own way there."""

from __future__ import annotations

import io

from pyiceberg.io import InputFile, OutputFile, OutputStream

from infold.lake.stores import places
from infold.lake.stores.file_io import StoredFile, StoreFileIO


class StoreWriter(StoreFileIO):
    """It deletes nothing: what an owner's commit leaves behind may stay."""

    def new_output(self, location: str) -> OutputFile:
        """An object that is there once it is closed."""
        return _Written(location)

    def delete(self, location: str | InputFile | OutputFile) -> None:
        """It stays."""


class _Written(OutputFile):
    def __len__(self) -> int:
        return len(self.to_input_file())

    def exists(self) -> bool:
        return self.to_input_file().exists()

    def to_input_file(self) -> InputFile:
        return StoredFile(self.location)

    def create(self, overwrite: bool = False) -> OutputStream:
        return _Object(self.location)


class _Object(io.BytesIO):
    def __init__(self, location: str) -> None:
        super().__init__()
        self._location = location

    def close(self) -> None:
        if not self.closed:
            places.write(self._location, self.getvalue())
        super().close()
