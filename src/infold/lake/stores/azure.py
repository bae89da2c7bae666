"""How a container in Azure is reached: by a key, a signature, an application, or an identity."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from infold.core.object_store import Stores, split
from infold.lake.stores.bucket import ANSWER_SECONDS, CONNECT_SECONDS, RETRIES, TRIES
from infold.lake.stores.bucket import client_options as client_options_of
from infold.lake.stores.bucket import deltalake_options as of_deltalake
from infold.messages import store_errors
from infold.system.secrets import resolve

LOGIN = "https://login.microsoftonline.com"
_VARIABLES = {
    "account_key": ("AZURE_STORAGE_KEY", "AZURE_STORAGE_ACCOUNT_KEY"),
    "sas_token": ("AZURE_STORAGE_SAS_TOKEN",),
    "tenant_id": ("AZURE_TENANT_ID",),
    "client_id": ("AZURE_CLIENT_ID",),
    "client_secret": ("AZURE_CLIENT_SECRET",),
}
"""Environment variables in which Azure's tools look for each, the first one first."""


@dataclass(frozen=True, slots=True)
class AzureAccess:
    """How a container is reached; without anything, by the identity of the machine."""

    account: str
    host: str
    """The account's server, as URLs name it."""
    endpoint: str = ""
    account_key: str = field(default="", repr=False)
    sas_token: str = field(default="", repr=False)
    tenant_id: str = ""
    client_id: str = ""
    client_secret: str = field(default="", repr=False)

    @property
    def blobs(self) -> str:
        """The URL of the account's blobs; another server has the accounts as folders."""
        if self.endpoint:
            return f"{self.endpoint}/{self.account}"
        return f"https://{self.host.replace('.dfs.', '.blob.', 1)}"

    def open(self, bucket: str) -> Any:
        """The container by obstore."""
        from obstore.store import AzureStore

        config: Any = self._config()
        return AzureStore(
            bucket.partition("@")[0],
            config=config,
            client_options=client_options_of(self.blobs),
            retry_config=RETRIES,
        )

    def _config(self) -> dict[str, str]:
        """What obstore and deltalake, which have the same library, are told of it."""
        options = {"account_key": self.account_key, "sas_key": self.sas_token}
        if self.client_secret:
            names = ("tenant_id", "client_id", "client_secret")
            options |= {name: getattr(self, name) for name in names}
        options |= {"account_name": self.account, "endpoint": self.blobs}
        return {name: text for name, text in options.items() if text}

    def deltalake_options(self) -> Mapping[str, str]:
        """For tables of Delta Lake, opened by deltalake."""
        own = {f"azure_storage_{name}": text for name, text in self._config().items()}
        return {**own, **of_deltalake(self.blobs)}

    def pyiceberg_properties(self) -> Mapping[str, str]:
        """For the files of tables, read by pyiceberg: nothing, as infold reads them for it."""
        return {}


def access_of(stores: Stores, bucket: str, root: Path) -> AzureAccess:
    """How a container is reached now. Raises where a secret is not there."""
    options, at = stores.of(bucket), stores.key(bucket)
    host = split(bucket)[0].partition("@")[2]
    own = any(getattr(options, name) for name in _VARIABLES)
    found = {
        name: resolve(getattr(options, name), root, at).strip() if own else _from_environment(names)
        for name, names in _VARIABLES.items()
    }
    return AzureAccess(host.partition(".")[0], host, options.endpoint.rstrip("/"), **_alone(found))


def _from_environment(names: Sequence[str]) -> str:
    return next((text for name in names if (text := os.environ.get(name, ""))), "")


def _alone(credentials: Mapping[str, str]) -> dict[str, str]:
    """The first way that is there to say who one is, alone."""
    if credentials["account_key"]:
        return {"account_key": credentials["account_key"]}
    if credentials["sas_token"]:
        return {"sas_token": credentials["sas_token"].removeprefix("?")}
    names = ("tenant_id", "client_id", "client_secret")
    return {name: credentials[name] for name in names} if credentials["client_secret"] else {}


_PLAIN_FILE_SYSTEM = "org.apache.hadoop.fs.azurebfs.AzureBlobFileSystem"
_OAUTH = "org.apache.hadoop.fs.azurebfs.oauth2"

HADOOP_COMMON: Mapping[str, str] = {
    "fs.abfss.impl": "org.apache.hadoop.fs.azurebfs.SecureAzureBlobFileSystem",
    "fs.AbstractFileSystem.abfss.impl": "org.apache.hadoop.fs.azurebfs.Abfss",
    # Delta's small files get their names by the class above, as its versions do.
    "spark.sql.streaming.checkpointFileManagerClass": (
        "org.apache.spark.sql.execution.streaming.checkpointing."
        "FileSystemBasedCheckpointFileManager"
    ),
    # Java's own TLS: that of OpenSSL is a jar more.
    "fs.azure.ssl.channel.mode": "Default_JSSE",
    "fs.azure.networking.library": "JDK_HTTP_URL_CONNECTION",
    # Parts of an object wait in the private folder of the process until they are sent.
    "fs.azure.buffer.dir": "${java.io.tmpdir}/abfs",
    "fs.azure.http.connection.timeout": str(CONNECT_SECONDS * 1000),
    "fs.azure.http.read.timeout": str(ANSWER_SECONDS * 1000),
    "fs.azure.io.retry.max.retries": str(TRIES),
    "fs.azure.io.retry.backoff.interval": "200",
    "fs.azure.io.retry.max.backoff.interval": "2000",
}


def hadoop_settings(stores: Stores, buckets: Sequence[str], root: Path) -> Mapping[str, str]:
    """For files and tables, by Spark; there are secrets among them. Each account has its own."""
    settings, accounts = dict(HADOOP_COMMON), dict[str, tuple[str, AzureAccess]]()
    for bucket in buckets:
        access = access_of(stores, bucket, root)
        other, same = accounts.setdefault(access.host, (bucket, access))
        if same != access:
            scope = f"all containers of account {access.account}"
            raise store_errors.one_key_for_all(what=scope, bucket=bucket, other=other)
        if access.endpoint != next(iter(accounts.values()))[1].endpoint:
            other = next(iter(accounts.values()))[0]
            scope = "all accounts of Azure's, if one has an endpoint,"
            raise store_errors.one_key_for_all(what=scope, bucket=bucket, other=other)
        settings |= {f"{name}.{access.host}": text for name, text in _settings(access).items()}
        if access.endpoint:
            settings |= _other_server(access.endpoint)
    return settings


def _other_server(endpoint: str) -> Mapping[str, str]:
    """What leads to a server that is not Azure's; the class of abfss insists on TLS."""
    settings = {"fs.azure.abfs.endpoint": urlsplit(endpoint).netloc}
    if endpoint.startswith("http:"):
        settings |= {"fs.abfss.impl": _PLAIN_FILE_SYSTEM, "fs.azure.always.use.https": "false"}
    return settings


def _settings(access: AzureAccess) -> Mapping[str, str]:
    if access.account_key:
        return {
            "fs.azure.account.auth.type": "SharedKey",
            "fs.azure.account.key": access.account_key,
        }
    if access.sas_token:
        return {
            "fs.azure.account.auth.type": "SAS",
            "fs.azure.sas.fixed.token": access.sas_token,
        }
    own = {
        "fs.azure.account.auth.type": "OAuth",
        "fs.azure.account.oauth.provider.type": f"{_OAUTH}.MsiTokenProvider",
    }
    if access.client_secret:
        own |= {
            "fs.azure.account.oauth.provider.type": f"{_OAUTH}.ClientCredsTokenProvider",
            "fs.azure.account.oauth2.client.endpoint": f"{LOGIN}/{access.tenant_id}/oauth2/token",
            "fs.azure.account.oauth2.client.id": access.client_id,
            "fs.azure.account.oauth2.client.secret": access.client_secret,
        }
    return own
