"""
Failures of the machine as named errors: the one place that knows how disks, memory and JVMs fail.

Python, SQLite, Spark and the JVM describe one full disk in different words, most of them a stack
trace. :func:`known_failure` returns the error with its name, or None: then the failure is a mistake
of the program's own, or of the step's query.

Spark's classes are recognized by their names, so that nothing here imports Spark.
"""

from __future__ import annotations

import errno
import json
import os
import re
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path

from infold.messages import catalog_errors, command_errors, faults, run_errors, store_errors
from infold.messages.errors import InfoldError, Spot
from infold.system.kept_files import replace_file

_KEY = "storage_options of the target"
_URL = re.compile(r"(?:s3a?|gs|abfss)://[^\s:,;]+|https?://[^\s,;?]+/[^\s,;?]+")

_CREDENTIALS = (
    "InvalidAccessKeyId|SignatureDoesNotMatch|ExpiredToken|InvalidToken|TokenRefreshRequired"
)
_REGION = "AWSRedirectException|AuthorizationHeaderMalformed|PermanentRedirect"
_NONE = "NoAwsCredentialsException|NoAuthWithAWSException|Unable to load credentials"
_SILENT = (
    r"(?:ConnectException|UnknownHostException|SocketTimeoutException|NoRouteToHostException)"
    r"[^\n]*s3a?://"
    r"|s3a?://[^\n]*(?:Unable to execute HTTP request|Connection refused|connect timed out)"
    r"|ApiCallTimeoutException"
)
_FAILED = (
    r"AWS(?:ServiceIO|Client|BadRequest|Status500|ServiceThrottled|NoResponse)\w*Exception"
    r"|awssdk\.\S*(?:SdkClientException|S3Exception)"
    r"|org\.apache\.http\.ConnectionClosedException"
)

_GOOGLE = r"Error accessing gs://\S+ reason=|(?:GoogleJson|Http|Token)ResponseException: "
_NO_JAR = (
    r"(?:apache\.hadoop\.fs\.(?:s3a|azurebfs)|software\.amazon\.awssdk|com\.google\.cloud)"
    r"\S* not found"
)
_AZURE = r'Operation failed: "[^"]*", '
_TO_GOOGLE = (
    r"(?:Connection refused|Connect timed out|Read timed out|UnknownHostException|No route to host)"
)

_HDFS_SILENT = (
    r"Call From \S+ to \S+ failed on|DestHost:destPort|between local host is"
    r"|IllegalArgumentException: java\.net\.UnknownHostException"
)
_HDFS_FAILED = (
    r"SafeModeException|Name node is in safe mode|BlockMissingException|Could not obtain block"
    r"|could only be written to \d+ of|QuotaExceededException|LeaseExpiredException"
    r"|All datanodes \S+ are bad"
)


def _url(line: str) -> str:
    """The place that a line names; empty if it names none."""
    match = _URL.search(line)
    return match[0].rstrip(".") if match else ""


_IN_HDFS = re.compile(r'(hdfs://[^\s,;"]+)|Call From \S+ to ([^\s/]+) failed|inode="([^"]+)"')


def _hdfs_place(line: str) -> str:
    """The place that a line of HDFS names: a URL, a NameNode, or a path."""
    match = _IN_HDFS.search(line)
    return match[1] or f"hdfs://{match[2] or match[3]}" if match else "hdfs://"


STORE_FAILURES: tuple[tuple[str, Callable[[str], InfoldError]], ...] = (
    (
        _NO_JAR,
        lambda line: store_errors.jars_missing(key=_KEY, why=line),
    ),
    (
        "UnknownStoreException|NoSuchBucket",
        lambda line: store_errors.bucket_missing(key=_KEY, at=_url(line), why=line),
    ),
    (
        _CREDENTIALS,
        lambda line: store_errors.credentials_refused(key=_KEY, at=_url(line), why=line),
    ),
    (_REGION, lambda line: store_errors.wrong_region(key=_KEY, at=_url(line), why=line)),
    (_NONE, lambda line: store_errors.no_credentials(key=_KEY, at=_url(line), why=line)),
    (
        r"AccessDeniedException: s3a?:|S3Exception.*Status Code: 403",
        lambda line: store_errors.denied(key=_KEY, at=_url(line), why=line),
    ),
    (_SILENT, lambda line: store_errors.unreachable(key=_KEY, at=_url(line), why=line)),
    (
        rf"(?:{_GOOGLE})401|TokenResponseException: 40\d|invalid_grant",
        lambda line: store_errors.credentials_refused(key=_KEY, at=_url(line), why=line),
    ),
    (
        "Error getting access token from metadata server|Application Default Credentials are not",
        lambda line: store_errors.no_credentials(key=_KEY, at="gs://", why=line),
    ),
    (
        rf"(?:{_GOOGLE})403",
        lambda line: store_errors.denied(key=_KEY, at=_url(line), why=line),
    ),
    (
        rf"Error accessing gs://\S+ reason={_TO_GOOGLE}",
        lambda line: store_errors.unreachable(key=_KEY, at=_url(line), why=line),
    ),
    (
        rf"(?:{_GOOGLE})[45]\d\d|Error accessing gs://",
        lambda line: store_errors.failed(key=_KEY, at=_url(line), why=line),
    ),
    (
        "FilesystemNotFound",
        lambda line: store_errors.bucket_missing(key=_KEY, at=_url(line), why=line),
    ),
    (
        rf"{_AZURE}401|AuthenticationFailed|InvalidAuthenticationInfo|AADToken: HTTP",
        lambda line: store_errors.credentials_refused(key=_KEY, at=_url(line), why=line),
    ),
    (rf"{_AZURE}403", lambda line: store_errors.denied(key=_KEY, at=_url(line), why=line)),
    (
        r"Status code: -1 error code: null",
        lambda line: store_errors.unreachable(key=_KEY, at=_url(line), why=line),
    ),
    (
        rf"{_AZURE}(?:429|5\d\d)",
        lambda line: store_errors.failed(key=_KEY, at=_url(line), why=line),
    ),
    (
        "SIMPLE authentication is not enabled",
        lambda line: store_errors.kerberos(key=_KEY, at=_hdfs_place(line), why=line),
    ),
    (
        r"security\.AccessControlException|Permission denied: user=",
        lambda line: store_errors.denied(key=_KEY, at=_hdfs_place(line), why=line),
    ),
    (
        "StandbyException",
        lambda line: store_errors.standby(key=_KEY, at=_hdfs_place(line), why=line),
    ),
    (
        _HDFS_SILENT,
        lambda line: store_errors.unreachable(key=_KEY, at=_hdfs_place(line), why=line),
    ),
    (
        _HDFS_FAILED,
        lambda line: store_errors.failed(key=_KEY, at=_hdfs_place(line), why=line),
    ),
    (_FAILED, lambda line: store_errors.failed(key=_KEY, at=_url(line), why=line)),
)


def is_store_failure(text: str) -> bool:
    """Whether a message of the JVM's says that a store failed, and not what it has."""
    return any(re.search(words, text) for words, _ in STORE_FAILURES)


NAMELESS = frozenset(
    {
        "database-unusable",
        "disk-full",
        "internal",
        "not-permitted",
        "out-of-memory",
        "system-refused",
        "too-deep",
    }
)
"""Errors that have nothing to do with the model that was being built."""

_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_NOT_ALLOWED = (errno.EACCES, errno.EPERM, errno.EROFS)


def known_failure(error: BaseException) -> InfoldError | None:
    """The named error of a failure of the machine; None for any other failure."""
    if isinstance(error, InfoldError):
        return error
    if isinstance(error, OSError) and error.errno is not None:
        return _system_failure(error, _path(error))
    if isinstance(error, RecursionError):
        return faults.too_deep(why="something in it is nested deeper than can be read")
    if isinstance(error, MemoryError):
        return faults.out_of_memory("infold's own process", str(error))
    if isinstance(error, sqlite3.Error):
        return _sqlite_failure(error)
    known = _CLASSES & {kind.__name__ for kind in type(error).__mro__}
    if known and (silence := next((one for one in _chain(error) if _is_silence(one)), None)):
        return faults.engine_died(why=in_a_line(silence))
    if known:
        return _function_failure(str(error)) or known_failure_of(str(error))
    inner = error.__cause__ or getattr(error, "orig", None)
    return known_failure(inner) if isinstance(inner, OSError | sqlite3.Error) else None


_CLASSES = frozenset(
    {"Py4JError", "PySparkException", "Py4JNetworkError", "Py4JJavaError", "SparkConnectException"}
)
_GONE = frozenset({"Py4JNetworkError"})
_SILENCE = (
    "Answer from Java side is empty",
    "An error occurred while trying to connect to the Java server",
    "Error while sending or receiving",
)
_NO_ANSWER = re.compile(r"An error occurred while calling \S+")
"""All that py4j says of a call whose JVM died before it answered; an answer has a trace."""


def _chain(error: BaseException) -> Iterator[BaseException]:
    """An error and those in whose handling it was raised; pyspark gives some another meaning."""
    link: BaseException | None = error
    while link is not None:
        yield link
        link = link.__cause__ or link.__context__


def _is_silence(error: BaseException) -> bool:
    """Whether it is py4j that says that nothing came back."""
    kinds, text = {kind.__name__ for kind in type(error).__mro__}, str(error)
    if not kinds & _CLASSES:
        return isinstance(error, ConnectionRefusedError | ConnectionResetError)
    return (
        bool(kinds & _GONE)
        or bool(_NO_ANSWER.fullmatch(text.strip()))
        or any(word in text for word in _SILENCE)
    )


def _system_failure(error: OSError, path: str) -> InfoldError:
    why = error.strerror or str(error)
    if error.errno in _NO_ROOM:
        return faults.disk_full(path=path, why=why)
    if error.errno in _NOT_ALLOWED:
        return faults.not_permitted(path=path, why=why)
    if isinstance(error, ConnectionRefusedError | ConnectionResetError):
        return faults.engine_died(why=why)
    return faults.system_refused(path=path, why=why)


def _path(error: OSError) -> str:
    """The file of the error, if Python names one."""
    name = error.filename2 if error.filename is None else error.filename
    return os.fsdecode(name) if isinstance(name, str | bytes) else ""


def _sqlite_failure(error: sqlite3.Error) -> InfoldError | None:
    """A catalog that is locked or cannot be written; the ledger reports its own file itself."""
    if isinstance(error, sqlite3.OperationalError | sqlite3.DatabaseError):
        return faults.database_unusable(why=str(error))
    return None


def known_failure_of(text: str) -> InfoldError | None:
    """
    The named error of a JVM's message; None for any other.

    In its stack traces the first cause comes last.
    """
    for words, make_error in _JAVAS:
        match = re.search(words, text)
        if match:
            line = text[text.rfind("\n", 0, match.start()) + 1 :].split("\n", 1)[0].strip()
            return make_error(line.removeprefix("Caused by: ").lstrip(": "))
    return None


FUNCTION_FAILED = "infold-function-failed: "
"""What the message of an exception of a Python function of the project begins with."""


def _function_failure(text: str) -> InfoldError | None:
    """What a Python function of the project raised in one of Spark's workers."""
    start = text.find(FUNCTION_FAILED)
    if start < 0:
        return None
    try:
        facts, _ = json.JSONDecoder().raw_decode(text, start + len(FUNCTION_FAILED))
    except json.JSONDecodeError:  # cut off
        return None
    at = Spot.of_line(facts["file"], facts["line"], str(facts["text"]))
    return run_errors.function_failed(
        at, function=facts["function"], what=facts["what"], arguments=facts["arguments"]
    )


def _spark_version() -> str:
    from importlib.metadata import version

    return version("pyspark")


def _file_of(line: str) -> str:
    """The path in a line of Java's; empty if there is none."""
    match = re.search(r"(?:file:)?(/[^\s:;,()]+)", line)
    return match[1] if match else ""


_LOCKED_OUT = (
    "AccessDeniedException|Permission denied|Operation not permitted"
    "|Read-only file system|SQLITE_READONLY|SQLITE_CANTOPEN"
)
_CLUSTER_LOST = (
    "All masters are unresponsive|Master removed our application|ExecutorLostFailure"
    r"|CHECKPOINT_RDD_BLOCK_ID_NOT_FOUND|Checkpoint block \S+ not found"
)
_NO_PYTHON = r"Cannot run program \"|No module named 'pyarrow'|PYTHON_VERSION_MISMATCH"
_SERVER_LOST = (
    r"INVALID_HANDLE\.(?:SESSION|OPERATION)\w+|StatusCode\.UNAVAILABLE|RETRIES_EXCEEDED"
    r"|NO_ACTIVE_SESSION|failed to connect to all addresses|No DataFrame with id"
)
"""A server of Spark Connect that was started again, or went."""
_CATALOG = "catalog of the target"
_ANSWER_LOST = (
    r"CommitStateUnknownException|exceptions\.RESTException|terminating connection due to"
    "|I/O error occurred while sending to the backend|This connection has been closed"
)
_CATALOG_FAILED = (
    r"exceptions\.Service\w+Exception|org\.postgresql\.util\.PSQL|RuntimeMetaException"
    r"|api\.MetaException|TTransportException|Metastore operation failed"
)
_JAVAS: tuple[tuple[str, Callable[[str], InfoldError]], ...] = (
    (_SERVER_LOST, lambda line: faults.server_lost(why=line)),
    (
        r"java\.lang\.OutOfMemoryError|SparkOutOfMemoryError|UNABLE_TO_ACQUIRE_MEMORY",
        lambda line: faults.out_of_memory("Spark", line),
    ),
    (
        r"No space left on device|Disk quota exceeded|SQLITE_FULL",
        lambda line: faults.disk_full(path=_file_of(line), why=line),
    ),
    *STORE_FAILURES,
    (
        _LOCKED_OUT,
        lambda line: faults.not_permitted(path=_file_of(line), why=line),
    ),
    (r"java\.lang\.StackOverflowError", lambda line: faults.too_deep(why=line)),
    (r"spark\.driver\.maxResultSize", lambda line: faults.too_many_parts(why=line)),
    (
        r"InvalidClassException|local class incompatible",
        lambda line: faults.other_spark(version=_spark_version(), why=line),
    ),
    (_NO_PYTHON, lambda line: faults.no_worker_python(why=line)),
    (
        _CLUSTER_LOST,
        lambda line: faults.cluster_lost(why=line),
    ),
    (r"Cannot call methods on a stopped SparkContext", lambda line: faults.engine_died(why=line)),
    (
        _ANSWER_LOST,
        lambda line: catalog_errors.answer_lost(key=_CATALOG, at="", why=line),
    ),
    (
        r"exceptions\.ForbiddenException|permission denied for (?:table|schema|database|relation)",
        lambda line: catalog_errors.not_permitted(key=_CATALOG, at="", why=line),
    ),
    (
        r"exceptions\.NotAuthorizedException|password authentication failed",
        lambda line: catalog_errors.login_refused(key=_CATALOG, at="", why=line),
    ),
    (
        _CATALOG_FAILED,
        lambda line: catalog_errors.failed(key=_CATALOG, at="", why=line),
    ),
)
"""Patterns of Java's messages, with what makes the named error; the first that fits counts."""


def is_answer_lost(error: BaseException) -> bool:
    """Whether a commit was asked for and nobody knows yet if it happens."""
    failure = known_failure(error)
    return failure is not None and failure.slug == "catalog-answer-lost"


def as_user_error(error: BaseException, root: Path) -> InfoldError:
    """
    The error to show to a user; an unknown one is ``crashed``, with its traceback in a file.

    ``root`` is the project's folder.
    """
    failure = known_failure(error)
    if failure is not None:
        return failure
    return command_errors.crashed(what=in_a_line(error), log=write_traceback(error, root))


def write_traceback(error: BaseException, root: Path) -> str:
    """Write the traceback of an error to a file, and return its path or why there is none."""
    import tempfile
    import traceback  # costs as much as click; only a crash pays for it

    text = "".join(traceback.format_exception(error)).encode("utf-8", "backslashreplace")
    log = root / ".infold" / "last-error.log"
    try:
        log.parent.mkdir(parents=True, exist_ok=True)
        replace_file(log, text)
    except OSError:
        try:
            with tempfile.NamedTemporaryFile(
                prefix="infold-last-error-", suffix=".log", delete=False
            ) as other:
                other.write(text)
        except OSError:
            return "no file: neither the project's folder nor a temporary one can be written"
        return other.name
    return str(log)


def in_a_line(error: BaseException) -> str:
    """The kind of an error and what it says, cut off where that is long."""
    return f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"
