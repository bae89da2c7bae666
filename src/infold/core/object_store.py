"""Object stores as infold.yml names them: URLs of places in them, and how they are reached."""

from __future__ import annotations

import re
from dataclasses import dataclass, fields

SCHEMES = ("s3", "s3a")
"""The schemes of places that infold reads and writes."""

PLANNED_SCHEMES = ("gs", "abfs", "abfss", "hdfs")
"""Schemes that infold knows by name and does not have yet."""

_BUCKET = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*\Z")


def is_url(path: str) -> bool:
    """Whether a path of infold.yml is a place in a store, and no folder."""
    return "://" in path


def scheme_of(url: str) -> str:
    """What a URL begins with, in lower case."""
    return url.partition("://")[0].lower()


def split(url: str) -> tuple[str, str]:
    """The bucket of a URL, and the key in it: without slashes at either end."""
    bucket, _, key = url.partition("://")[2].partition("/")
    return bucket, key.strip("/")


def names_bucket(url: str) -> bool:
    """Whether a URL names a bucket in full, with no pattern."""
    return bool(_BUCKET.match(split(url)[0]))


def names_object(url: str) -> bool:
    """Whether a URL is one of an object that infold can write."""
    key = url.partition("://")[2].partition("/")[2]
    plain = not {"", ".", ".."} & {*key.split("/")}
    return scheme_of(url) in SCHEMES and names_bucket(url) and plain


def joined(url: str, *parts: str) -> str:
    """A place below another one."""
    return "/".join([url.rstrip("/"), *parts])


@dataclass(frozen=True, slots=True)
class StorageOptions:
    """
    How a store is reached: ``storage_options`` of a target.

    What is empty follows from the environment and the profile, as for every other program. Texts
    are those of infold.yml: with references to secrets, and no secret.
    """

    endpoint: str = ""
    """The URL of a server that is not Amazon's."""
    region: str = ""
    access_key_id: str = ""
    secret_access_key: str = ""
    session_token: str = ""
    profile: str = ""
    """A profile of the files in ``~/.aws``."""
    path_style: bool | None = None
    """Whether a bucket is named in the path; by default where there is an ``endpoint``."""


OPTION_KEYS = tuple(one.name for one in fields(StorageOptions))


@dataclass(frozen=True, slots=True)
class Stores:
    """The options of all buckets, and the whole options of those that have others."""

    common: StorageOptions = StorageOptions()
    buckets: tuple[tuple[str, StorageOptions], ...] = ()

    def of(self, bucket: str) -> StorageOptions:
        """The options of a bucket."""
        return dict(self.buckets).get(bucket, self.common)

    def key(self, bucket: str) -> str:
        """What errors call these options."""
        own = f".buckets.{bucket}" if bucket in dict(self.buckets) else ""
        return f"storage_options{own} of the target"


NO_STORES = Stores()
"""Nothing is declared: all follows from the environment."""
