"""What Hadoop's connector and the AWS SDK say of an object store in Spark, as named errors."""

from __future__ import annotations

import re
from collections.abc import Callable

from infold.messages import store_errors
from infold.messages.errors import InfoldError

_KEY = "storage_options of the target"
_URL = re.compile(r"s3a?://[^\s:,;]+")

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


def _url(line: str) -> str:
    """The place that a line names; empty if it names none."""
    found = _URL.search(line)
    return found[0] if found else ""


STORE_FAILURES: tuple[tuple[str, Callable[[str], InfoldError]], ...] = (
    (
        r"org\.apache\.hadoop\.fs\.s3a\.\w+ not found|software\.amazon\.awssdk\S* not found",
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
    (_FAILED, lambda line: store_errors.failed(key=_KEY, at=_url(line), why=line)),
)


def is_store_failure(text: str) -> bool:
    """Whether a message of the JVM's says that a store failed, and not what it has."""
    return any(re.search(words, text) for words, _ in STORE_FAILURES)
