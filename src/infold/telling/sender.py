"""
Sends events to where a target wants them, without keeping the run waiting.

A file gets a line for each event. A URL gets them from a thread of its own; at the end of a run
what is left is waited for, for so long as was declared. The first event that is not taken is the
last that is tried: a service that is down costs a run one timeout, and not one for each step.
"""

from __future__ import annotations

import json
import os
import queue
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.client import HTTPException
from pathlib import Path
from typing import Any, Protocol
from urllib.error import HTTPError, URLError
from urllib.request import HTTPRedirectHandler, Request, build_opener

from infold import __version__
from infold.core.hooks import Lineage
from infold.core.interval import SECOND
from infold.messages.errors import InfoldError
from infold.system.secrets import resolve, resolve_url

Event = Mapping[str, Any]


class Sender(Protocol):
    """Where events go."""

    def send(self, event: Event) -> None:
        """Send one, now or soon."""

    def close(self) -> Iterator[str]:
        """Send what is left; yields what could not be sent, and why."""


def sender_of(lineage: Lineage, root: Path) -> Sender:
    """What sends to the place that a target declares."""
    return ToUrl(lineage, root) if lineage.url else ToFile(root / lineage.file)


@dataclass
class ToFile:
    """Adds events to a file, each in one write to its end."""

    path: Path
    why: str = ""

    def send(self, event: Event) -> None:
        """A line."""
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            file = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o666)
            try:
                os.write(file, json.dumps(event, ensure_ascii=False).encode() + b"\n")
            finally:
                os.close(file)
        except OSError as error:
            self.why = error.strerror or type(error).__name__

    def close(self) -> Iterator[str]:
        """Nothing is left; why something was not written."""
        if self.why:
            yield f"lineage: {self.path} was not written: {self.why}"


@dataclass
class ToUrl:
    """Sends events to a URL, in their order."""

    lineage: Lineage
    root: Path
    why: str = ""
    sent: int = 0
    given: int = 0
    _left: queue.SimpleQueue[Event | None] = field(default_factory=queue.SimpleQueue)
    _thread: threading.Thread | None = None

    def send(self, event: Event) -> None:
        """Give it to the thread, which begins with the first."""
        self.given += 1
        if self._thread is None:
            self._thread = threading.Thread(target=self._send_all, name="lineage", daemon=True)
            self._thread.start()
        self._left.put(event)

    def close(self) -> Iterator[str]:
        """Wait for what is left, not for ever."""
        if self._thread is None:
            return
        self._left.put(None)
        self._thread.join(self.lineage.timeout / SECOND)
        if self.sent < self.given:
            missing = self.given - self.sent
            why = self.why or "no answer in time"
            yield f"lineage: {missing:,} of {self.given:,} events were not sent: {why}"

    def _send_all(self) -> None:
        while (event := self._left.get()) is not None:
            if self.why:
                continue
            try:
                with with_secrets():
                    self._send(event)
                self.sent += 1
            except NotSentError as error:
                self.why = str(error)

    def _send(self, event: Event) -> None:
        root, own = self.root, self.lineage
        url = resolve_url(own.url, root, "lineage.url")
        headers = {name: resolve(text, root, "lineage.headers") for name, text in own.headers}
        body = json.dumps(event, ensure_ascii=False).encode()
        known = {"Content-Type": "application/json", **headers}
        post(url, body, known, seconds=own.timeout / SECOND)


# The words never have the address, a header or an answer: any of them may be, or repeat, a secret.
# A redirection is not followed, as it would take headers to another place.


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
