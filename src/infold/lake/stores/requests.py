"""How long a request to a store may take, and how often one is repeated that failed."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import TYPE_CHECKING, Any

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
    """The same for deltalake."""
    return {
        "allow_http": str(endpoint.startswith("http:")).lower(),
        "connect_timeout": f"{CONNECT_SECONDS}s",
        "timeout": f"{ANSWER_SECONDS}s",
        "max_retries": str(TRIES),
        "retry_timeout": "60s",
    }
