"""What the connectors for object stores say in Spark, as named errors."""

from __future__ import annotations

import re
from collections.abc import Callable

from infold.messages import store_errors
from infold.messages.errors import InfoldError

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
    found = _URL.search(line)
    return found[0].rstrip(".") if found else ""


_IN_HDFS = re.compile(r'(hdfs://[^\s,;"]+)|Call From \S+ to ([^\s/]+) failed|inode="([^"]+)"')


def _in_hdfs(line: str) -> str:
    """The place that a line of HDFS names: a URL, a NameNode, or a path."""
    found = _IN_HDFS.search(line)
    return found[1] or f"hdfs://{found[2] or found[3]}" if found else "hdfs://"


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
        lambda line: store_errors.kerberos(key=_KEY, at=_in_hdfs(line), why=line),
    ),
    (
        r"security\.AccessControlException|Permission denied: user=",
        lambda line: store_errors.denied(key=_KEY, at=_in_hdfs(line), why=line),
    ),
    (
        "StandbyException",
        lambda line: store_errors.standby(key=_KEY, at=_in_hdfs(line), why=line),
    ),
    (
        _HDFS_SILENT,
        lambda line: store_errors.unreachable(key=_KEY, at=_in_hdfs(line), why=line),
    ),
    (
        _HDFS_FAILED,
        lambda line: store_errors.failed(key=_KEY, at=_in_hdfs(line), why=line),
    ),
    (_FAILED, lambda line: store_errors.failed(key=_KEY, at=_url(line), why=line)),
)


def is_store_failure(text: str) -> bool:
    """Whether a message of the JVM's says that a store failed, and not what it has."""
    return any(re.search(words, text) for words, _ in STORE_FAILURES)
