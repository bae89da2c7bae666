"""What a catalog does not do that it is asked for."""

from __future__ import annotations

from infold.messages.errors import InfoldError


class RefusedError(Exception):
    """A catalog did not change what it was asked to: it is no longer, or there is another one."""

    def __init__(self, named: InfoldError) -> None:
        super().__init__(str(named))
        self.named = named
