"""How long a request to a store may take, and how often one is repeated that failed."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from infold.messages import store_errors
from infold.messages.errors import InfoldError

if TYPE_CHECKING:
    from obstore.store import RetryConfig


TRIES = 5
CONNECT_SECONDS = 10
ANSWER_SECONDS = 60

RETRIES: RetryConfig = {
    "max_retries": TRIES,
    "retry_timeout": timedelta(seconds=60),
    "backoff": {
        "init_backoff": timedelta(milliseconds=100),
        "max_backoff": timedelta(seconds=2),
        "base": 2,
    },
}


def client_options(endpoint: str) -> Any:
    """What obstore is told of its connections to a server; without one, to that of the store."""
    return {
        "allow_http": endpoint.startswith("http:"),
        "connect_timeout": timedelta(seconds=CONNECT_SECONDS),
        "timeout": timedelta(seconds=ANSWER_SECONDS),
    }


def deltalake_options(endpoint: str) -> Mapping[str, str]:
    """The same limits of time and tries under the names that deltalake has for them."""
    return {
        "allow_http": str(endpoint.startswith("http:")).lower(),
        "connect_timeout": f"{CONNECT_SECONDS}s",
        "timeout": f"{ANSWER_SECONDS}s",
        "max_retries": str(TRIES),
        "retry_timeout": "60s",
    }


_CODE = re.compile(r"<Code>(\w+)</Code>")
_MESSAGE = re.compile(r"<Message>([^<]*)</Message>")
_STATUS = re.compile(r"(?:status code: |\(code: |↳ )(\d{3})\b")
"""In the words of obstore, of its deletions of several, and of Delta's kernel in deltalake."""

_COLOURS = re.compile(r"\x1b\[[0-9;]*m")

_BAD_KEY = re.compile(r'Path "(.+)"(?: contained|: Encountered)', re.DOTALL)
"""What obstore says of a key in a listing, and of one that it is asked for."""

_NO_BUCKET = ("NoSuchBucket", "ContainerNotFound")
_NO_OBJECT = ("NoSuchKey", "BlobNotFound")
_MACHINE = ("169.254.", "metadata.google.internal")
"""Addresses of the service that gives a cloud's machine its keys."""

_CREDENTIALS = (
    *("InvalidAccessKeyId", "SignatureDoesNotMatch", "ExpiredToken", "InvalidToken"),
    *("TokenRefreshRequired", "RequestTimeTooSkewed", "InvalidSecurity"),
    *("AuthenticationRequired", "AuthenticationFailed", "InvalidAuthenticationInfo"),
)
_REGION = ("PermanentRedirect", "AuthorizationHeaderMalformed", "TemporaryRedirect")


def no_bucket(text: str) -> bool:
    """Whether a failure says that there is no such bucket."""
    return any(code in text for code in _NO_BUCKET)


def no_object(text: str) -> bool:
    """Whether a failure says that there is no such object."""
    return any(code in text for code in _NO_OBJECT)


def refused(error: Exception, *, key: str, at: str) -> InfoldError:
    """The error of a failed request; ``key`` is what infold.yml calls the options of the bucket."""
    text = _COLOURS.sub("", str(error))
    message_text = text.partition("\n\nDebug source")[0]
    if bad := _BAD_KEY.search(message_text):
        return store_errors.bad_key(at=at, name=ascii(bad[1]).strip("'"))
    line = " ".join(message_text.split())
    code, message, status_in = _CODE.search(text), _MESSAGE.search(text), _STATUS.search(line)
    why = f"{code[1]}: {message[1]}" if code and message else line[:300]
    kind, status = code[1] if code else "", status_in[1] if status_in else ""
    if kind in _NO_BUCKET:
        return store_errors.bucket_missing(key=key, at=at, why=why)
    if kind in _CREDENTIALS or status == "401":
        return store_errors.credentials_refused(key=key, at=at, why=why)
    if kind in _REGION or status in ("301", "307") or "configured region" in line:
        return store_errors.wrong_region(key=key, at=at, why=why)
    if any(place in line for place in _MACHINE):
        return store_errors.no_credentials(key=key, at=at, why=why)
    if status == "403":
        return store_errors.denied(key=key, at=at, why=why)
    if "credential" in line.lower():
        return store_errors.no_credentials(key=key, at=at, why=why)
    if "error sending request" in line or "connect" in line.lower():
        return store_errors.unreachable(key=key, at=at, why=why)
    return store_errors.failed(key=key, at=at, why=why)
