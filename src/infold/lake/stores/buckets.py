"""The buckets that this process has opened, each by one way."""

from __future__ import annotations

from pathlib import Path

from infold.core.object_store import Stores, bucket_url, split
from infold.lake.stores.bucket import Bucket
from infold.lake.stores.hdfs import HdfsAccess
from infold.lake.stores.hdfs_bucket import HdfsBucket
from infold.lake.stores.object_bucket import open_bucket
from infold.lake.stores.settings import Access, access_of

_opened: dict[tuple[str, Access], Bucket] = {}


def bucket_of(url: str, stores: Stores, root: Path) -> Bucket:
    """The bucket of a URL. Raises where obstore, a secret or a profile is not there."""
    bucket, key = bucket_url(url), stores.key(url)
    access = access_of(stores, bucket, root)
    found = _opened.get((bucket, access))
    if found is None:
        if isinstance(access, HdfsAccess):
            found = HdfsBucket(bucket, key, access.open(split(bucket)[0]))
        else:
            found = open_bucket(bucket, access, url, key)
        _opened[bucket, access] = found
    return found
