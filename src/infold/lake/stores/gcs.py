"""How a bucket in Google Cloud Storage is reached: by the key of a service account, or a role."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from infold.core.object_store import Stores
from infold.lake.stores.bucket import ANSWER_SECONDS, CONNECT_SECONDS, RETRIES, TRIES
from infold.lake.stores.bucket import client_options as client_options_of
from infold.lake.stores.bucket import deltalake_options as of_deltalake
from infold.messages import store_errors
from infold.system.secrets import resolve

TOKENS = "https://oauth2.googleapis.com/token"
_PARTS = ("client_email", "private_key", "private_key_id")


@dataclass(frozen=True, slots=True)
class GcsAccess:
    """How a bucket is reached; without a key, by the service account of the machine."""

    endpoint: str = ""
    key: str = field(default="", repr=False)
    """The JSON of the key of a service account."""

    def open(self, bucket: str) -> Any:
        """The bucket by obstore."""
        from obstore.store import GCSStore

        more: Any = {"service_account_key": self.key} if self.key else {}
        if self.endpoint:
            more["base_url"] = self.endpoint
        return GCSStore(
            bucket,
            config=more,
            client_options=client_options_of(self.endpoint),
            retry_config=RETRIES,
        )

    def deltalake_options(self) -> Mapping[str, str]:
        """For tables of Delta Lake, opened by deltalake."""
        options = {"google_service_account_key": self.key, "google_base_url": self.endpoint}
        return {
            **{name: text for name, text in options.items() if text},
            **of_deltalake(self.endpoint),
        }

    def pyiceberg_properties(self) -> Mapping[str, str]:
        """For the files of tables, read by pyiceberg: nothing, as infold reads them for it."""
        return {}


def access_of(stores: Stores, bucket: str, root: Path) -> GcsAccess:
    """How a bucket is reached now. Raises where a secret is not there, or a key is none."""
    options, at = stores.of(bucket), stores.key(bucket)
    endpoint = options.endpoint.rstrip("/")
    if options.service_account_key:
        key, place = resolve(options.service_account_key, root, at), "service_account_key"
    else:
        key, place = _key_of_the_environment(at)
    if not key:
        return GcsAccess(endpoint)
    if wrong := _wrong_with(key):
        raise store_errors.bad_key_of_google(key=at, place=place, why=wrong)
    return GcsAccess(endpoint, key)


def _key_of_the_environment(at: str) -> tuple[str, str]:
    """The key where Google's own tools look for one, and what names it; none if there is none."""
    named = os.environ.get("GOOGLE_APPLICATION_CREDENTIALS", "")
    usual = Path("~/.config/gcloud/application_default_credentials.json").expanduser()
    file = Path(named) if named else usual
    try:
        return file.read_text(encoding="utf-8"), str(file)
    except (OSError, UnicodeDecodeError) as error:
        if not named and isinstance(error, FileNotFoundError):
            return "", ""
        why = error.strerror if isinstance(error, OSError) else "it is no text"
        raise store_errors.bad_key_of_google(key=at, place=str(file), why=why or "") from None


def _wrong_with(key: str) -> str:
    """Why a key of a service account is none; no part of it is told."""
    try:
        document = json.loads(key)
    except ValueError:
        return "it is no JSON"
    if not isinstance(document, dict) or document.get("type") != "service_account":
        return "it is no key of a service account"
    lacking = [part for part in _PARTS if not isinstance(document.get(part), str)]
    return f"it has no {lacking[0]}" if lacking else ""


HADOOP_COMMON: Mapping[str, str] = {
    "fs.gs.impl": "com.google.cloud.hadoop.fs.gcs.GoogleHadoopFileSystem",
    "fs.AbstractFileSystem.gs.impl": "com.google.cloud.hadoop.fs.gcs.GoogleHadoopFS",
    # An object is there or is not: no object is made for the name of a folder.
    "fs.gs.implicit.dir.repair.enable": "false",
    # Names of new files are unique, so that it is not asked before whether there is one.
    "fs.gs.create.items.conflict.check.enable": "false",
    # Each file that is written has these in memory, however small it is: 64 MB and 8 MB otherwise.
    "fs.gs.outputstream.upload.chunk.size": str(8 * 1024 * 1024),
    "fs.gs.outputstream.buffer.size": str(1024 * 1024),
    "fs.gs.http.connect-timeout": str(CONNECT_SECONDS * 1000),
    "fs.gs.http.read-timeout": str(ANSWER_SECONDS * 1000),
    "fs.gs.http.max.retry": str(TRIES),
}


def hadoop_settings(stores: Stores, buckets: Sequence[str], root: Path) -> Mapping[str, str]:
    """
    For files and tables, read and written by Spark; there are secrets among them.

    The connector has one key and one server for all buckets: others are refused.
    """
    accesses = {bucket: access_of(stores, bucket, root) for bucket in buckets}
    access = accesses[buckets[0]]
    for bucket, other in accesses.items():
        if other != access:
            raise store_errors.one_key_for_all(
                what="all buckets of Google's", bucket=bucket, other=buckets[0]
            )
    return {**HADOOP_COMMON, **_server(access), **_authentication(access)}


def _server(access: GcsAccess) -> Mapping[str, str]:
    return {"fs.gs.storage.root.url": f"{access.endpoint or 'https://storage.googleapis.com'}/"}


def _authentication(access: GcsAccess) -> Mapping[str, str]:
    names = ("email", "private.key", "private.key.id")
    key = json.loads(access.key) if access.key else {}
    settings = zip(names, (key.get(part, "") for part in _PARTS), strict=True)
    return {
        **{f"fs.gs.auth.service.account.{name}": text for name, text in settings if text},
        "fs.gs.token.server.url": key.get("token_uri") or TOKENS,
    }
