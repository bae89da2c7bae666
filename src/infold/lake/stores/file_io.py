"""
Files of tables in a store as pyiceberg reads them, by infold's own way there.

pyarrow reads from S3, by the same server and key as all. To others it has ways of its own: it takes
no key of a service account, and in Azure it asks by a second protocol.
"""

from __future__ import annotations

from pyiceberg.io import FileIO, InputFile, InputStream, OutputFile

from infold.core.object_store import split
from infold.lake.stores.bucket import ObjectReader
from infold.lake.stores.places import bucket_at


class StoreFileIO(FileIO):
    """Reads objects. It neither writes nor deletes: pyiceberg is asked for rows only."""

    def new_input(self, location: str) -> InputFile:
        """Nothing is asked for until it is opened, or its length is."""
        return StoredFile(location)

    def new_output(self, location: str) -> OutputFile:
        """Not here."""
        raise NotImplementedError(location)

    def delete(self, location: str | InputFile | OutputFile) -> None:
        """Not here."""
        raise NotImplementedError(str(location))


class StoredFile(InputFile):
    """An object as it is when it is opened."""

    def __len__(self) -> int:
        """Bytes, by a request."""
        return bucket_at(self.location).head(split(self.location)[1]).size

    def exists(self) -> bool:
        """Whether it is there."""
        try:
            len(self)
        except FileNotFoundError:
            return False
        return True

    def open(self, seekable: bool = True) -> InputStream:  # noqa: ARG002 (pyiceberg's)
        """The object as a file."""
        bucket, key = bucket_at(self.location), split(self.location)[1]
        listed = bucket.head(key)
        return ObjectReader(bucket, key, listed.size, listed.etag)
