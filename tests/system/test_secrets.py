"""Secrets are read where they are needed, and no password of a URL is shown."""

from __future__ import annotations

from pathlib import Path

import pytest

from infold.messages.errors import InfoldError
from infold.system.secrets import bad_reference, has_password, hide_passwords, resolve_url

URL = "postgresql+psycopg://ann:${env:SECRET}@host:5432/books"


def test_a_part_of_a_url_is_percent_encoded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A password may have any characters: none of them means anything in the URL. What is all of
    the URL is a URL already. An editor ends the last line of a file; blanks belong to the password.
    """
    monkeypatch.setenv("SECRET", "p@ss/w:?#%rd ä")
    monkeypatch.setenv("WHOLE", "postgresql://a:b%40@h/d")
    (tmp_path / "secret").write_text(" x y\r\n", encoding="utf-8")

    for url, resolved in (
        (URL, "postgresql+psycopg://ann:p%40ss%2Fw%3A%3F%23%25rd%20%C3%A4@host:5432/books"),
        ("${env:WHOLE}", "postgresql://a:b%40@h/d"),
        ("a${file:secret}b", "a%20x%20yb"),
    ):
        assert resolve_url(url, tmp_path, "ledger") == resolved


@pytest.mark.parametrize(
    ("reference", "why"),
    [
        ("${env:UNSET}", "it is not set"),
        ("${env:EMPTY}", "it is empty"),
        ("${file:nowhere}", "the file cannot be read: No such file or directory"),
        ("${file:.}", "the file cannot be read: Is a directory"),
        ("${file:empty}", "the file is empty"),
        ("${file:binary}", "the file is not UTF-8"),
    ],
)
def test_a_secret_that_is_not_there_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, reference: str, why: str
) -> None:
    """The message names the reference, and the key that has it."""
    monkeypatch.setenv("EMPTY", "")
    monkeypatch.delenv("UNSET", raising=False)
    (tmp_path / "empty").write_text("\n", encoding="utf-8")
    (tmp_path / "binary").write_bytes(b"\xff\xfe")

    with pytest.raises(InfoldError) as raised:
        resolve_url(f"x{reference}", tmp_path, "ledger of target prod")

    assert raised.value.slug == "secret-missing"
    assert dict(raised.value.facts) == {
        "key": "ledger of target prod",
        "secret": reference,
        "why": why,
    }


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        (URL, None),
        ("a${file:/run/secrets/ledger}b", None),
        ("${env:A}${env:B}", None),
        ("$HOME", None),
        ("x${HOME}@h", "${HOME}"),
        ("${env:}", "${env:}"),
        ("${vault:a}", "${vault:a}"),
        ("${env:A", "${env:A}"),
    ],
)
def test_what_only_looks_like_a_reference(text: str, wrong: str | None) -> None:
    """Text that begins like a reference and is none is found."""
    assert bad_reference(text) == wrong


@pytest.mark.parametrize(
    "url",
    [
        *("postgresql://u@h/d", "postgresql://u:${env:P}@h/d", "sqlite:///.infold/ledger.db"),
        *("postgresql://h:5432/d", "'postgresql://u:${env:P}@h/d?sslpassword=${file:p}&a=b'"),
        *("postgresql://${env:U}@h/d", "postgresql://${env:U}:${env:P}@h/d"),
    ],
)
def test_what_has_no_password_is_shown(url: str) -> None:
    """A reference to one is none."""
    assert not has_password(url)
    assert hide_passwords(f"ledger: {url}") == f"ledger: {url}"


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("'postgresql://u:x@h/d'", "'postgresql://u:*@h/d'"),
        ("postgresql://u:a?b@h/d", "postgresql://u:***@h/d"),
        ("postgresql://u:a/b:c@h/d", "postgresql://u:*****@h/d"),
        ("postgresql://u:a@b@h/d", "postgresql://u:***@h/d"),
        ("postgresql://u:%40a@h/d", "postgresql://u:****@h/d"),
        ("postgresql://u:a${env:P}@h/d", "postgresql://u:*${env:P}@h/d"),
        ("postgresql://u:a'b@h/d", "postgresql://u:***@h/d"),
        ('postgresql://u:"@h/d', "postgresql://u:*@h/d"),
        ("postgresql://u:a b@h/d", "postgresql://u:***@h/d"),
        ("postgresql://h/d?password='x", "postgresql://h/d?password=**"),
        ("postgresql://h/d?password=a b", "postgresql://h/d?password=***"),
        ("postgresql://u@h/d?oauth_client_secret=a", "postgresql://u@h/d?oauth_client_secret=*"),
        ("postgresql://${env:U}:a@h/d", "postgresql://${env:U}:*@h/d"),
        ("mysql://u:ab@h/d # note", "mysql://u:**@h/d # note"),
        ("postgresql://h/d?user=u&password=ab&x=y", "postgresql://h/d?user=u&password=**&x=y"),
        ("postgresql://h/d?PASSWORD=a", "postgresql://h/d?PASSWORD=*"),
        ("postgresql://u@h/d?sslpassword=ab", "postgresql://u@h/d?sslpassword=**"),
    ],
)
def test_a_password_is_found_and_hidden(url: str, shown: str) -> None:
    """Whatever its characters, and as long as it was, so that a caret stays in place."""
    assert has_password(url)
    assert hide_passwords(f"l: {url}") == f"l: {shown}"
    assert has_password("postgresql://h/d?%70assword=x")  # PostgreSQL decodes names, too
