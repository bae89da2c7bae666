"""How a bucket in S3 is reached: by ``storage_options``, the environment and the profile."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from infold.core.object_store import StorageOptions, Stores, split
from infold.lake.stores.bucket import (
    ANSWER_SECONDS,
    CONNECT_SECONDS,
    RETRIES,
    TRIES,
    client_options,
)
from infold.lake.stores.bucket import deltalake_options as of_deltalake
from infold.messages import store_errors
from infold.system.secrets import resolve

DEFAULT_REGION = "us-east-1"
_ROLES = ("role_arn", "credential_process", "sso_session", "sso_start_url")
"""Entries of a profile whose key comes from elsewhere: from a role, a program, a login."""


@dataclass(frozen=True, slots=True)
class S3Access:
    """How a bucket is reached; without a key, by the role of the machine."""

    region: str
    endpoint: str = ""
    path_style: bool = False
    access_key_id: str = ""
    secret_access_key: str = field(default="", repr=False)
    session_token: str = field(default="", repr=False)

    def open(self, bucket: str) -> Any:
        """The bucket by obstore."""
        from obstore.store import S3Store

        more: dict[str, Any] = {"endpoint": self.endpoint} if self.endpoint else {}
        if self.access_key_id:
            # By itself obstore would add a token of the environment to a key of infold.yml.
            more["credential_provider"] = self._credential
        return S3Store(
            bucket,
            region=self.region,
            virtual_hosted_style_request=not self.path_style,
            client_options=client_options(self.endpoint),
            retry_config=RETRIES,
            **more,
        )

    def _credential(self) -> dict[str, Any]:
        return {
            "access_key_id": self.access_key_id,
            "secret_access_key": self.secret_access_key,
            "token": self.session_token or None,
            "expires_at": None,
        }

    def pyiceberg_properties(self) -> Mapping[str, str]:
        """For the files of tables, read by pyiceberg."""
        properties = {
            "s3.endpoint": self.endpoint,
            "s3.region": self.region,
            "s3.access-key-id": self.access_key_id,
            "s3.secret-access-key": self.secret_access_key,
            "s3.session-token": self.session_token,
            "s3.force-virtual-addressing": "" if self.path_style else "true",
            "s3.connect-timeout": str(CONNECT_SECONDS),
            "s3.request-timeout": str(ANSWER_SECONDS),
        }
        return {name: text for name, text in properties.items() if text}

    def deltalake_options(self) -> Mapping[str, str]:
        """For tables of Delta Lake, by deltalake: what is not said, it takes from elsewhere."""
        options = {
            "aws_endpoint_url": self.endpoint,
            "aws_region": self.region,
            "aws_access_key_id": self.access_key_id,
            "aws_secret_access_key": self.secret_access_key,
            "aws_session_token": self.session_token,
        }
        return {
            **{name: text for name, text in options.items() if text},
            **of_deltalake(self.endpoint),
            "aws_virtual_hosted_style_request": str(not self.path_style).lower(),
            # A version that is there is never written over.
            "aws_conditional_put": "etag",
        }


def access_of(stores: Stores, bucket: str, root: Path) -> S3Access:
    """How a bucket is reached now. Raises where a secret or a profile is not there."""
    options, key = stores.of(bucket), stores.key(bucket)
    profile = _profile(options, key)
    endpoint = (
        options.endpoint
        or os.environ.get("AWS_ENDPOINT_URL_S3")
        or os.environ.get("AWS_ENDPOINT_URL")
        or profile.get("endpoint_url", "")
    )
    region = (
        options.region
        or os.environ.get("AWS_REGION")
        or os.environ.get("AWS_DEFAULT_REGION")
        or profile.get("region")
        or DEFAULT_REGION
    )
    style = bool(endpoint) if options.path_style is None else options.path_style
    credentials = _credentials(options, profile, root, key)
    return S3Access(region, endpoint.rstrip("/"), style, *credentials)


def _credentials(
    options: StorageOptions, profile: Mapping[str, str], root: Path, key: str
) -> tuple[str, str, str]:
    if options.access_key_id:
        own = (options.access_key_id, options.secret_access_key, options.session_token)
        first, second, third = (resolve(text, root, key).strip() for text in own)
        return first, second, third
    names = ("aws_access_key_id", "aws_secret_access_key", "aws_session_token")
    if not options.profile and os.environ.get(names[0].upper()):
        first, second, third = (os.environ.get(name.upper(), "") for name in names)
        return first, second, third
    first, second, third = (profile.get(name, "") for name in names)
    named = options.profile or os.environ.get("AWS_PROFILE")
    if named and not (first and second):
        wrong = next((name for name in _ROLES if name in profile), "")
        why = f"it has {wrong}, and no key" if wrong else "it has no key"
        raise store_errors.no_such_profile(key=key, profile=named, why=why)
    return first, second, third


def _profile(options: StorageOptions, key: str) -> Mapping[str, str]:
    """What the files of the AWS tools say of a profile."""
    import configparser

    name = options.profile or os.environ.get("AWS_PROFILE") or ""
    home = Path("~/.aws").expanduser()
    files = {
        "AWS_SHARED_CREDENTIALS_FILE": home / "credentials",
        "AWS_CONFIG_FILE": home / "config",
    }
    settings: dict[str, str] = {}
    for variable, usual in reversed(files.items()):
        parser = configparser.RawConfigParser(strict=False)
        try:
            parser.read(os.environ.get(variable) or usual, encoding="utf-8")
        except (configparser.Error, UnicodeDecodeError, OSError) as error:
            why = str(error).splitlines()[0]
            raise store_errors.no_such_profile(
                key=key, profile=name or "default", why=why
            ) from None
        for section in (f"profile {name or 'default'}", name or "default"):
            if parser.has_section(section):
                settings |= dict(parser.items(section))
    if name and not settings:
        raise store_errors.no_such_profile(key=key, profile=name, why="no file has it")
    return settings


_SIMPLE = "org.apache.hadoop.fs.s3a.SimpleAWSCredentialsProvider"
_TEMPORARY = "org.apache.hadoop.fs.s3a.TemporaryAWSCredentialsProvider"
_CHAIN = "software.amazon.awssdk.auth.credentials.DefaultCredentialsProvider"

HADOOP_COMMON: Mapping[str, str] = {
    **{f"fs.{scheme}.impl": "org.apache.hadoop.fs.s3a.S3AFileSystem" for scheme in ("s3", "s3a")},
    # Names of new files are unique, so that it is not asked before whether there is one.
    "fs.s3a.performance.flags": "create,mkdir,delete",
    # Parts of an object wait in the private folder of the process until they are sent.
    "fs.s3a.buffer.dir": "${java.io.tmpdir}/s3a",
    # An object that is replaced while it is read is an error, and no mixture of both.
    "fs.s3a.change.detection.source": "etag",
    "fs.s3a.change.detection.mode": "server",
    "fs.s3a.connection.establish.timeout": f"{CONNECT_SECONDS}s",
    "fs.s3a.connection.timeout": f"{ANSWER_SECONDS}s",
    "fs.s3a.attempts.maximum": str(TRIES),
    "fs.s3a.retry.limit": str(TRIES),
    "fs.s3a.retry.interval": "200ms",
    # Reads of several parts at once fail when a connection is cut; others are repeated.
    "parquet.hadoop.vectored.io.enabled": "false",
}


def hadoop_settings(stores: Stores, buckets: tuple[str, ...], root: Path) -> Mapping[str, str]:
    """
    For files and tables, read and written by Spark; there are secrets among them.

    What a bucket does not say is set to nothing: S3A would take that of all buckets, and send the
    requests for a bucket of Amazon's to another server. An empty endpoint is Amazon's.
    """
    settings: dict[str, str] = dict(HADOOP_COMMON)
    for url in ("", *buckets):
        access, bucket = access_of(stores, url, root), split(url)[0]
        prefix = f"fs.s3a.bucket.{bucket}." if bucket else "fs.s3a."
        provider = _CHAIN
        if access.access_key_id:
            provider = _TEMPORARY if access.session_token else _SIMPLE
        of_bucket = {
            "endpoint": access.endpoint,
            "endpoint.region": access.region,
            "path.style.access": str(access.path_style).lower(),
            "connection.ssl.enabled": str(not access.endpoint.startswith("http:")).lower(),
            "access.key": access.access_key_id,
            "secret.key": access.secret_access_key,
            "session.token": access.session_token,
            "aws.credentials.provider": provider,
        }
        settings |= {f"{prefix}{name}": text for name, text in of_bucket.items() if text or bucket}
    return settings
