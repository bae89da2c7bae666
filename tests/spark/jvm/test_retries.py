"""Calls to a server of Spark Connect that never reach it; no server is started."""

from __future__ import annotations

import grpc  # type: ignore[import-untyped]
import pytest
from pyspark.sql.connect.client.retries import Retrying

from infold.spark.connect.retries import MOST, Retries


class _Unavailable(grpc.RpcError):  # type: ignore[misc]
    """Nobody answers at the server's address."""

    def code(self) -> grpc.StatusCode:
        return grpc.StatusCode.UNAVAILABLE

    def trailing_metadata(self) -> None:
        """It has none."""


def _made(retries: Retries, fails: int, waits: list[float]) -> None:
    """A call that comes through after so many times."""
    for attempt in Retrying(retries, waits.append):
        with attempt:
            if len(waits) < fails:
                raise _Unavailable


def test_a_call_that_comes_through() -> None:
    """The next one has all its retries."""
    retries = Retries()
    for fails in (2, MOST):
        waits: list[float] = []
        _made(retries, fails, waits)
        assert len(waits) == fails


@pytest.mark.filterwarnings("ignore:.*RETRIES_EXCEEDED")
def test_after_one_that_was_given_up_none_waits() -> None:
    """Each frame of a run that lost its server calls once more as Python forgets it."""
    retries = Retries()
    with pytest.raises(_Unavailable):
        _made(retries, MOST + 1, [])
    waits: list[float] = []
    with pytest.raises(_Unavailable):
        _made(retries, 1, waits)
    assert (retries.given_up, waits) == (True, [])
