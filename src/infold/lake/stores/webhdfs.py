"""
Requests to WebHDFS, the protocol by which HDFS is spoken to without a JVM.

A NameNode answers what is asked about names. For content it names a DataNode, which is asked then.
What fails for a reason that may pass is asked again a few times; all requests here can be repeated.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import quote, urlsplit

import requests
from requests.adapters import HTTPAdapter

from infold.lake.stores.bucket import AT_ONCE
from infold.lake.stores.requests import ANSWER_SECONDS, CONNECT_SECONDS, TRIES

_FIRST_PAUSE, _LONGEST_PAUSE = 0.1, 2.0
_MAY_PASS = (500, 502, 503, 504)
_REDIRECTED = 307
_RETRIABLE, _STANDBY = "RetriableException", "StandbyException"

JsonObject = Mapping[str, Any]


class RefusedError(Exception):
    """
    An answer that is a failure.

    ``kind`` is Java's name of it, or empty where what answers is no WebHDFS.
    """

    def __init__(self, status: int, kind: str, said: str) -> None:
        super().__init__(f"{kind}: {said}" if kind else said)
        self.status = status
        self.kind = kind

    def may_pass(self, *, several: bool) -> bool:
        """Whether it is worth asking again, where there may be ``several`` NameNodes."""
        return self.status in _MAY_PASS or self.kind in (
            _RETRIABLE,
            *((_STANDBY,) if several else ()),
        )


class SilentError(Exception):
    """A server that cannot be reached, or does not answer."""


class WebHdfs:
    """
    NameNodes by the addresses of their HTTP servers, asked by a user who says no more than a name.

    One of them is active. It is asked until it is silent, or says that it is not.
    """

    def __init__(self, addresses: Sequence[str], user: str) -> None:
        self._addresses = addresses
        self._active = 0
        self._user = user
        self._session = requests.Session()
        for scheme in ("http://", "https://"):
            self._session.mount(scheme, HTTPAdapter(pool_maxsize=AT_ONCE))

    def status(self, path: str) -> JsonObject:
        """What the NameNode knows of a file or a folder."""
        found: JsonObject = self._said("GET", path, "GETFILESTATUS")["FileStatus"]
        return found

    def listed(self, path: str) -> Iterator[JsonObject]:
        """What is right in a folder, with a request for each thousand; of a file, itself."""
        last: str | None = None
        while True:
            after = {} if last is None else {"startAfter": last}
            page = self._said("GET", path, "LISTSTATUS_BATCH", **after)["DirectoryListing"]
            found = page["partialListing"]["FileStatuses"]["FileStatus"]
            yield from found
            if not page["remainingEntries"] or not found:
                return
            last = found[-1]["pathSuffix"]

    def read(self, path: str, start: int, length: int | None) -> bytes:
        """The bytes of a file from ``start`` on; all, or so many."""
        more: dict[str, Any] = {} if length is None else {"length": length}
        return self._of_datanode("GET", path, "OPEN", offset=start, **more)

    def create(self, path: str, content: bytes) -> None:
        """Have a file, and the folders above it; it is there before its content is."""
        self._of_datanode("PUT", path, "CREATE", content, overwrite="true")

    def rename(self, path: str, to: str) -> None:
        """Have a file under another name at one instant, in place of what had that name."""
        self._said("PUT", path, "RENAME", destination=to, renameoptions="OVERWRITE")

    def delete(self, path: str, *, recursive: bool) -> None:
        """Delete a file or a folder, if it is there."""
        self._said("DELETE", path, "DELETE", recursive=str(recursive).lower())

    def _said(self, method: str, path: str, op: str, **options: Any) -> JsonObject:
        """The answer of the NameNode."""
        for pause in _pauses():
            try:
                answer = self._of_namenode(method, path, op, options)
                return _json(answer) if answer.content else {}
            except (RefusedError, SilentError) as error:
                self._rest(error, pause)
        raise AssertionError

    def _of_namenode(
        self, method: str, path: str, op: str, options: Mapping[str, Any]
    ) -> requests.Response:
        """The answer of the one that is taken for active; if it is not, the next one is asked."""
        asked = self._active
        url = f"{self._addresses[asked]}/webhdfs/v1/{quote(path)}"
        try:
            return self._asked(method, url, {"op": op, "user.name": self._user, **options})
        except (RefusedError, SilentError) as error:
            standby = isinstance(error, SilentError) or error.kind == _STANDBY
            if standby and self._active == asked:  # no other thread has turned to the next one
                self._active = (asked + 1) % len(self._addresses)
            raise

    def _rest(self, error: RefusedError | SilentError, pause: float | None) -> None:
        """Wait before something is asked again, or raise."""
        several = len(self._addresses) > 1
        refused = isinstance(error, RefusedError) and not error.may_pass(several=several)
        if pause is None or refused:
            raise error
        time.sleep(pause)

    def _of_datanode(
        self, method: str, path: str, op: str, content: bytes | None = None, **options: Any
    ) -> bytes:
        """The answer of the DataNode that the NameNode names; another one if that is silent."""
        silent: list[str] = []
        for pause in _pauses():
            more = {"excludedatanodes": ",".join(silent)} if silent else {}
            place = ""
            try:
                answer = self._of_namenode(method, path, op, options | more)
                if answer.status_code != _REDIRECTED:  # a gateway that has the content itself
                    raise RefusedError(answer.status_code, "", "it names no DataNode")
                place = answer.headers["Location"]
                return self._asked(method, place, {}, content).content
            except (RefusedError, SilentError) as error:
                host = urlsplit(place).hostname
                if host and isinstance(error, SilentError) and host not in silent:
                    silent.append(host)
                self._rest(error, pause)
        raise AssertionError

    def _asked(
        self, method: str, url: str, query: Mapping[str, Any], content: bytes | None = None
    ) -> requests.Response:
        head = {"Content-Type": "application/octet-stream"} if method == "PUT" else None
        try:
            answer = self._session.request(
                method,
                url,
                params=query,
                data=content,
                headers=head,
                timeout=(CONNECT_SECONDS, ANSWER_SECONDS),
                allow_redirects=False,
            )
        except requests.RequestException as error:
            raise SilentError(f"{urlsplit(url).netloc}: {_cause(error)}") from error
        if answer.status_code < 300 or answer.status_code == _REDIRECTED:
            return answer
        raise _refused(answer)


def _pauses() -> Iterator[float | None]:
    """How long to wait after each try; nothing after the last, which is not forgiven."""
    for number in range(TRIES):
        yield min(_FIRST_PAUSE * 2**number, _LONGEST_PAUSE)
    yield None


def _json(answer: requests.Response) -> JsonObject:
    try:
        found: JsonObject = answer.json()
    except ValueError:
        raise _refused(answer) from None
    return found


def _refused(answer: requests.Response) -> RefusedError:
    """The failure that an answer is."""
    try:
        said = answer.json()["RemoteException"]
        return RefusedError(answer.status_code, said["exception"], _line(said["message"]))
    except (ValueError, KeyError, TypeError):
        line = f"status {answer.status_code}: {_line(answer.text)}"
        return RefusedError(answer.status_code, "", line)


def _line(text: str | None) -> str:
    """The first line of a message that says something."""
    printed = ("".join(filter(str.isprintable, line)).strip() for line in (text or "").splitlines())
    return next((line[:300] for line in printed if line), "")


def _cause(error: BaseException) -> str:
    """The innermost reason, which has no address of an object in Python in it."""
    while (inner := error.__cause__ or error.__context__) is not None:
        error = inner
    return _line(str(error)) or type(error).__name__
