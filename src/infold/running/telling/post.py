"""
Sends a request over HTTP, and says in a few words why it was not taken.

The words never have the address, a header or an answer: any of them may be, or repeat, a secret.
A redirection is not followed, as it would take headers to another place.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.client import HTTPException
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.request import HTTPRedirectHandler, Request, build_opener

from infold import __version__
from infold.messages.errors import InfoldError


class NotSentError(Exception):
    """Why something was not sent; its text may be shown."""


@contextmanager
def with_secrets() -> Iterator[None]:
    """Resolves references to secrets in the block: one that is not there is why nothing is sent."""
    try:
        yield
    except InfoldError as error:
        known = dict(error.facts)
        raise NotSentError(f"{known['secret']}, {known['why']}") from error


class _NoRedirects(HTTPRedirectHandler):
    def redirect_request(self, *_: Any, **__: Any) -> None:
        """None: the answer is taken as it is, which is no success."""


def post(url: str, body: bytes, headers: Mapping[str, str], *, seconds: float) -> None:
    """
    Send a body by POST. Raises NotSentError, at the latest after so many seconds.

    The time of a socket counts from byte to byte, and a name is looked up without any: a thread
    that is not waited for any longer ends with the process.
    """
    if not url.startswith(("http://", "https://")):
        raise NotSentError("its URL is none of http or https")
    failed: list[str] = []

    def send() -> None:
        try:
            failed.append(_sent(url, body, headers, seconds))
        except Exception as error:  # noqa: BLE001 - said, and never raised in a thread
            failed.append(type(error).__name__)

    thread = threading.Thread(target=send, name="infold-post", daemon=True)
    thread.start()
    thread.join(seconds)
    if not failed:
        raise NotSentError(f"no answer within {seconds:g} seconds")
    if failed[0]:
        raise NotSentError(failed[0])


def _sent(url: str, body: bytes, headers: Mapping[str, str], seconds: float) -> str:
    """Send it; why it was not taken, or nothing."""
    every = {"User-Agent": f"infold/{__version__}", **headers}
    try:
        request = Request(url, data=body, headers=every, method="POST")  # noqa: S310 - checked
        with build_opener(_NoRedirects).open(request, timeout=seconds):
            return ""
    except HTTPError as error:
        error.close()
        return f"the answer was {error.code}"
    except URLError as error:
        why = error.reason
        return _words(why) if isinstance(why, OSError) else "it could not be reached"
    except OSError as error:
        return _words(error)
    except (HTTPException, ValueError):
        return "its URL, its headers or the answer is not right"


def _words(error: OSError) -> str:
    """What a failure of the network is called."""
    if isinstance(error, TimeoutError):
        return "no answer in time"
    return error.strerror or type(error).__name__
