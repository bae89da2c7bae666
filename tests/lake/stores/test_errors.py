"""What a refused request is called."""

from __future__ import annotations

import pytest

from infold.lake.stores.errors import refused

KEYS = "Error performing PUT http://169.254.169.254/latest/api/token in 1ms - "


@pytest.mark.parametrize(
    ("said", "slug"),
    [
        (KEYS + "Server returned non-2xx status code: 403 Forbidden", "store-credentials-missing"),
        (KEYS + "error sending request", "store-credentials-missing"),
        ("Server returned non-2xx status code: 403 Forbidden: ", "store-access-denied"),
        ("status code: 403: <Code>ExpiredToken</Code>", "store-credentials-refused"),
        ("status code: 404: <Code>NoSuchBucket</Code>", "store-bucket-missing"),
        ("status code: 301 Moved Permanently", "store-wrong-region"),
        ("error sending request for url (http://127.0.0.1:1/b)", "store-unreachable"),
        ("status code: 401 Unauthorized", "store-credentials-refused"),
        ("Bulk delete request failed for key x: Not allowed. (code: 403)", "store-access-denied"),
        ("status code: 500 Internal Server Error", "store-failed"),
        ("a non-2xx status code\n \x1b[31m↳\x1b[0m 403 Forbidden\n", "store-access-denied"),
        ("a non-2xx status code\n \x1b[31m↳\x1b[0m 503 Slow Down\n", "store-failed"),
    ],
)
def test_a_refused_request_is_named(said: str, slug: str) -> None:
    """By what the store answered; and a refusal of the machine's service of keys is not its."""
    error = refused(OSError(f"Generic S3 error: {said}"), key="storage_options", at="s3://b/k")

    assert error.slug == slug
