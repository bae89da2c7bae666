"""How often a call to a server of Spark Connect is made again, and from when on no more."""

from __future__ import annotations

from pyspark.sql.connect.client.retries import DefaultPolicy, RetryPolicyState

MOST = 8
"""With waits of up to ten seconds, as many as fit into about a minute."""


class Retries(DefaultPolicy):
    """
    A call that did not reach the server is made again; once one never did, none is made again.

    PySpark asks the server to drop what a checkpoint of a frame left there when the frame goes, and
    waits for its answer wherever Python happens to be. A run that lost its server has dozens of
    such frames, and each would be waited for as long as the server was.
    """

    def __init__(self) -> None:
        super().__init__(max_retries=MOST, max_backoff=10_000)
        self.given_up = False

    def can_retry(self, e: BaseException) -> bool:
        """Whether a call that ended so is made again."""
        return not self.given_up and super().can_retry(e)

    def to_state(self) -> RetryPolicyState:
        """The retries of one call."""
        return _OfACall(self)


class _OfACall(RetryPolicyState):
    def __init__(self, retries: Retries) -> None:
        super().__init__(retries)
        self._retries = retries

    def next_attempt(self, exception: BaseException | None = None) -> int | None:
        """Milliseconds to wait, or None: the call is given up."""
        wait = super().next_attempt(exception)
        if wait is None:
            self._retries.given_up = True
        return wait
