"""Object stores as infold.yml names them: URLs of places in them, and how they are reached."""

from __future__ import annotations

import re
from dataclasses import dataclass, fields
from enum import StrEnum

from infold.messages import store_errors


class StoreKind(StrEnum):
    """Whose protocol a store speaks; the value is the scheme of its places."""

    S3 = "s3"
    GCS = "gs"
    AZURE = "abfss"
    HDFS = "hdfs"


SCHEMES = {
    "s3": StoreKind.S3,
    "s3a": StoreKind.S3,
    "gs": StoreKind.GCS,
    "abfss": StoreKind.AZURE,
    "hdfs": StoreKind.HDFS,
}
"""The schemes of places that infold reads and writes."""

PLANNED_SCHEMES = ("abfs", "webhdfs")
"""Schemes that infold knows by name and does not have."""

_BUCKET = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*\Z")
_CONTAINER = re.compile(r"[a-z0-9$][a-z0-9-]*@[a-z0-9]+\.dfs\.[a-z0-9.-]*[a-z0-9]\Z")
_NAMENODE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*(?::\d{1,5})?\Z")

_NAME_PATTERNS = {StoreKind.AZURE: _CONTAINER, StoreKind.HDFS: _NAMENODE}
_NAME_FORMS = {
    StoreKind.AZURE: "CONTAINER@ACCOUNT.dfs.core.windows.net",
    StoreKind.HDFS: "NAMENODE:8020",
}
"""How what stands for a bucket is written: a container of an account, or a whole HDFS."""


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


def kind_of(url: str) -> StoreKind:
    """Whose store a URL is in. Raises ``store_errors.unknown_store``."""
    kind = SCHEMES.get(scheme_of(url))
    if kind is None:
        raise store_errors.unknown_store(at=url, known=tuple(f"{one}://" for one in SCHEMES))
    return kind


def bucket_url(url: str) -> str:
    """The bucket of a URL as a URL, which tells it from one of another store."""
    return f"{kind_of(url)}://{split(url)[0]}"


def form_of(scheme: str, last: str = "FOLDER") -> str:
    """How a place in a store is written."""
    return f"{scheme}://{_NAME_FORMS.get(SCHEMES[scheme], 'BUCKET')}/{last}"


def forms(last: str = "FOLDER") -> tuple[str, ...]:
    """How places in all stores are written."""
    return tuple(form_of(scheme, last) for scheme in SCHEMES)


def names_bucket(url: str) -> bool:
    """Whether a URL names a bucket in full, with no pattern."""
    known = _NAME_PATTERNS.get(SCHEMES[scheme_of(url)], _BUCKET)
    return bool(known.match(split(url)[0]))


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
    """The URL of a server in place of Amazon's, or Google's; of a NameNode's HTTP server."""
    region: str = ""
    access_key_id: str = ""
    secret_access_key: str = ""
    session_token: str = ""
    profile: str = ""
    """A profile of the files in ``~/.aws``."""
    path_style: bool | None = None
    """Whether a bucket is named in the path; by default where there is an ``endpoint``."""
    service_account_key: str = ""
    """The JSON of a key of a service account of Google's."""
    account_key: str = ""
    """A key of a storage account of Azure's."""
    sas_token: str = ""
    """A shared access signature, in place of a key."""
    tenant_id: str = ""
    """Of Microsoft Entra, where an application has the right."""
    client_id: str = ""
    client_secret: str = ""
    user: str = ""
    """Who infold says it is in HDFS."""


OPTION_KEYS = tuple(one.name for one in fields(StorageOptions))

AWS_KEY = ("access_key_id", "secret_access_key", "session_token")
"""A key of Amazon's: its name, its secret, and the token of one that expires."""

APPLICATION = ("tenant_id", "client_id", "client_secret")
"""What says who an application of Microsoft Entra is."""

AZURE_KEYS = ("account_key", "sas_token", "client_secret")
"""Ways to say who one is at Azure, of which one is given."""

SECRETS = (*AWS_KEY, "service_account_key", *AZURE_KEYS)
"""Those of them that are no part of infold.yml."""

OPTION_KINDS = {
    **{key: StoreKind.S3 for key in OPTION_KEYS if key != "endpoint"},
    "service_account_key": StoreKind.GCS,
    **dict.fromkeys((*AZURE_KEYS, *APPLICATION), StoreKind.AZURE),
    "user": StoreKind.HDFS,
}
"""Whose store each of them is for; an endpoint any may have."""


@dataclass(frozen=True, slots=True)
class Stores:
    """The options of all buckets, and the whole options of those that have others."""

    common: StorageOptions = StorageOptions()
    buckets: tuple[tuple[str, StorageOptions], ...] = ()

    def of(self, bucket: str) -> StorageOptions:
        """The options of a bucket, which is named by a URL."""
        return dict(self.buckets).get(split(bucket)[0], self.common)

    def key(self, bucket: str) -> str:
        """What errors call these options."""
        name = split(bucket)[0]
        of_bucket = f".buckets.{name}" if name in dict(self.buckets) else ""
        return f"storage_options{of_bucket} of the target"

    @property
    def own(self) -> tuple[str, ...]:
        """The buckets that have options of their own, as URLs."""
        return tuple(f"{_kind_of_bucket(name, options)}://{name}" for name, options in self.buckets)


def kind_by_name(name: str) -> StoreKind | None:
    """Whose store a bucket is in, where its name alone says that."""
    if "@" in name:
        return StoreKind.AZURE
    return StoreKind.HDFS if ":" in name else None


def _kind_of_bucket(name: str, options: StorageOptions) -> StoreKind:
    """Whose store a bucket is in that no place names, by its name and its options."""
    if (kind := kind_by_name(name)) is not None:
        return kind
    if options.user:
        return StoreKind.HDFS
    return StoreKind.GCS if options.service_account_key else StoreKind.S3


NO_STORES = Stores()
"""Nothing is declared: all follows from the environment."""
