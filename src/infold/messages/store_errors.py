"""What is wrong with an object store: its declaration, the way to it, what may be done there."""

from __future__ import annotations

from infold.messages.errors import ExitCode, Finding, InfoldError, Message

_DOCTOR = "`infold doctor` tries it again."

sqlite_catalog = Finding(
    "store-without-catalog",
    "a warehouse in an object store needs a catalog that is not in it",
    {"warehouse": "{warehouse}"},
    "A store does not lock a file: two runs would overwrite each other's commits. Declare "
    "`catalog: {{type: jdbc, uri: …}}`, or one of type `rest` or `hive`; for runs on one machine "
    "only, a file there: `catalog: {{type: sqlite, uri: sqlite:///.infold/catalog.db}}`.",
)

no_bucket = Finding(
    "no-bucket",
    "{key} names no bucket",
    {"such as": "{form}"},
    "A bucket is named in full: letters, digits, dots, underscores and hyphens, and no pattern. In "
    "HDFS it is the NameNode.",
)

secret_written_out = Finding(
    "password-written-out",
    "{key} is written out, where everybody can read it who sees this file",
    {"such as": "${{env:NAME}}"},
    "Write `${{env:NAME}}` or `${{file:PATH}}` in its place, or leave it out: the environment is "
    "read too, and what the tools of Amazon and of Google keep.",
)

application_in_part = Finding(
    "half-a-key",
    "{where} has {key} without {other}",
    todo="An application of Microsoft Entra is `tenant_id`, `client_id` and `client_secret`.",
)

half_a_key = Finding(
    "half-a-key",
    "{where} has {key} without {other}",
    todo="Both together are a key. Add the other one, or leave both to the environment.",
)

extra_missing = Message(
    "store-driver-missing",
    "places in an object store need obstore, which is not installed",
    {"at": "{at}"},
    "Install it: pip install 'infold[{extra}]'",
)

jars_missing = Message(
    "store-jars-missing",
    "this Spark has no connector for places in an object store",
    {"key": "{key}", "why": "{why}"},
    "Let infold start Spark: it brings what is needed. A Spark that others start has to have the "
    "jars of docs/object-stores.md on its class path.",
)

not_over_connect = Message(
    "store-over-connect",
    "target {target} computes on a server of Spark Connect, and {place} is in an object store",
    {},
    "The server would need the connector and the keys, and infold does not give it these. Let the "
    "target compute here, on a cluster, or in folders that the server's machines have.",
)

no_such_profile = Message(
    "store-profile",
    "the profile for the object store cannot be used",
    {"key": "{key}", "profile": "{profile}", "why": "{why}"},
    "Name one that has `aws_access_key_id` and `aws_secret_access_key`. Others, such as those of "
    "single sign-on or of a role, can be put into the environment by `aws configure "
    "export-credentials`.",
)

bad_key_of_google = Message(
    "store-profile",
    "the key for Google Cloud Storage cannot be used",
    {"key": "{key}", "from": "{place}", "why": "{why}"},
    "Use the JSON of the key of a service account. On a machine of Google's its own account is "
    "used where none is named.",
)

one_key_for_all = Message(
    "store-two-ways",
    "Spark reaches {what} in one way",
    {"bucket": "{bucket}", "other": "{other}"},
    "Its connector has one server and one key for them. Give both the same `storage_options`, of "
    "somebody who may read both.",
)

unknown_store = Message(
    "not-supported-yet",
    "infold cannot reach places of this kind",
    {"at": "{at}", "supported": "{known}"},
)

no_number_of_file = Message(
    "not-supported-yet",
    "this server of WebHDFS does not say which file has a name",
    {"key": "{key}", "at": "{at}"},
    "It is a gateway, such as HttpFS. Only a NameNode has the number of a file, which tells one "
    "that was replaced from the one before it. Name the NameNode's own HTTP server as `endpoint` "
    "in `storage_options`: http://HOST:9870.",
    exit_code=ExitCode.FAILED,
)

kerberos = Message(
    "not-supported-yet",
    "this HDFS lets in who has a ticket of Kerberos",
    {"key": "{key}", "at": "{at}", "store": "{why}"},
    "infold says who it is by a name alone. Copy what arrives to an object store (`hadoop "
    "distcp`), or mount HDFS as a folder (its NFS gateway).",
    exit_code=ExitCode.FAILED,
)

other_user = Message(
    "store-two-ways",
    "Spark in this process is another user in HDFS already",
    {"by": "{one}", "now": "{other}"},
    "A JVM is one user, from its start on. Give all targets the same `user` in `storage_options`, "
    "call `infold.api.close()` in between, or start the Spark of others with HADOOP_USER_NAME.",
)

two_ways = Message(
    "store-two-ways",
    "this process reaches bucket {bucket} in another way already",
    {"by": "{one}", "now": "{other}"},
    "A process has one server and one key for a bucket. Give both the same `storage_options` for "
    "it, call `infold.api.close()` in between, or use them in two processes.",
)

bucket_missing = Message(
    "store-bucket-missing",
    "the object store has no such bucket",
    {"key": "{key}", "at": "{at}", "store": "{why}"},
    "Correct the URL, or create the bucket: infold never makes one. " + _DOCTOR,
    exit_code=ExitCode.FAILED,
)

denied = Message(
    "store-access-denied",
    "the store does not allow this",
    {"key": "{key}", "at": "{at}", "store": "{why}"},
    "Let this user list, read, write and delete below the warehouse, and list and read below the "
    "paths of sources. " + _DOCTOR,
    exit_code=ExitCode.FAILED,
)

credentials_refused = Message(
    "store-credentials-refused",
    "the object store does not take these credentials",
    {"key": "{key}", "at": "{at}", "store": "{why}"},
    "Renew or correct them, and run again: nothing is lost or counted twice. They are those of "
    "`storage_options`, else of the environment, else of a profile. " + _DOCTOR,
    exit_code=ExitCode.FAILED,
)

_GIVEN_BY = {
    "gs": "Set GOOGLE_APPLICATION_CREDENTIALS to the file of a service account's key, or name its "
    "content as `service_account_key` in `storage_options` by `${file:PATH}`. ",
    "abfss": "Set AZURE_STORAGE_KEY or AZURE_STORAGE_SAS_TOKEN, or name one as `account_key` or "
    "`sas_token` in `storage_options` by `${env:NAME}`. ",
}
_GIVEN_BY_AWS = (
    "Set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE, or name them in "
    "`storage_options` by `${env:NAME}`. "
)


def no_credentials(key: str, at: str, why: str) -> InfoldError:
    """Nothing says who infold is at a store; what to set depends on whose store it is."""
    return InfoldError(
        "store-credentials-missing",
        "there are no credentials for the object store",
        (("key", key), ("at", at), ("why", why)),
        _GIVEN_BY.get(at.partition("://")[0], _GIVEN_BY_AWS) + _DOCTOR,
        ExitCode.FAILED,
    )


standby = Message(
    "store-standby",
    "this NameNode is on standby, and another one is active",
    {"key": "{key}", "at": "{at}", "store": "{why}"},
    "Name the HTTP servers of both as `endpoint` in `storage_options` of the target, with a comma "
    "between them. " + _DOCTOR,
    exit_code=ExitCode.FAILED,
)

no_webhdfs = Message(
    "store-no-webhdfs",
    "what answers there is no WebHDFS",
    {"key": "{key}", "at": "{at}", "said": "{why}"},
    "Name the HTTP server of the NameNode as `endpoint` in `storage_options` of the target, with "
    "its scheme and its port, which is not that of hdfs:// URLs: http://HOST:9870. " + _DOCTOR,
    exit_code=ExitCode.FAILED,
)

wrong_region = Message(
    "store-wrong-region",
    "the bucket is in another region",
    {"key": "{key}", "at": "{at}", "store": "{why}"},
    "Correct `region` in `storage_options` of the target, or AWS_REGION. " + _DOCTOR,
    exit_code=ExitCode.FAILED,
)

unreachable = Message(
    "store-unreachable",
    "the store cannot be reached, or does not answer",
    {"key": "{key}", "at": "{at}", "why": "{why}"},
    "It was tried several times. Check `endpoint` in `storage_options` of the target and the "
    "network, and run again: nothing is lost or counted twice. " + _DOCTOR,
    exit_code=ExitCode.FAILED,
)

failed = Message(
    "store-failed",
    "the store failed",
    {"key": "{key}", "at": "{at}", "store": "{why}"},
    "It was tried several times. Run again: nothing is lost or counted twice. " + _DOCTOR,
    exit_code=ExitCode.FAILED,
)

nothing_there = Message(
    "no-such-folder",
    "there is no object below the path of source {source}",
    {"path": "{pattern}", "folder": "{folder}"},
    "Correct `path` in infold.yml. Or nothing has been delivered yet: then make the folder, which "
    "in an object store is an empty object {folder}/.",
)

bad_name = Message(
    "bad-file-name",
    "the name of an object cannot be read by Spark",
    {"source": "{source}", "file": "{path}", "why": "{why}"},
    "Rename the object, or write the `path` of the source so that it is not matched.",
)

bad_key = Message(
    "bad-file-name",
    "the name of an object cannot be read",
    {"at": "{at}", "object": "{name}"},
    "Between its slashes are to be names: not empty, neither `.` nor `..`, and without control "
    "characters. Rename the object, or let the `path` of the source begin further down.",
)
