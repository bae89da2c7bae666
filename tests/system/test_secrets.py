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
    """A password may have any characters: none of them means anything in the URL."""
    monkeypatch.setenv("SECRET", "p@ss/w:?#%rd ä")

    assert resolve_url(URL, tmp_path, "ledger") == (
        "postgresql+psycopg://ann:p%40ss%2Fw%3A%3F%23%25rd%20%C3%A4@host:5432/books"
    )


def test_a_whole_url_is_as_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is all of the URL is a URL already."""
    monkeypatch.setenv("SECRET", "postgresql://a:b%40@h/d")

    assert resolve_url("${env:SECRET}", tmp_path, "ledger") == "postgresql://a:b%40@h/d"


def test_a_file_is_the_projects_and_its_last_line_ends(tmp_path: Path) -> None:
    """An editor ends the last line of a file; blanks belong to the password."""
    (tmp_path / "secret").write_text(" x y\r\n", encoding="utf-8")

    assert resolve_url("a${file:secret}b", tmp_path, "ledger") == "a%20x%20yb"


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
    ("line", "shown"),
    [
        ("ledger: postgresql://u@h/d", None),
        ("ledger: postgresql://u:${env:P}@h/d", None),
        ("ledger: sqlite:///.infold/ledger.db", None),
        ("ledger: postgresql://h:5432/d", None),
        ("ledger: 'postgresql://u:${env:P}@h/d?sslpassword=${file:p}&a=b'", None),
        ("l: 'postgresql://u:x@h/d'", "l: 'postgresql://u:*@h/d'"),
        ("l: postgresql://u:a?b@h/d", "l: postgresql://u:***@h/d"),
        ("l: postgresql://u:a/b:c@h/d", "l: postgresql://u:*****@h/d"),
        ("l: postgresql://u:a@b@h/d", "l: postgresql://u:***@h/d"),
        ("l: postgresql://u:%40a@h/d", "l: postgresql://u:****@h/d"),
        ("l: postgresql://u:a${env:P}@h/d", "l: postgresql://u:*${env:P}@h/d"),
        ("l: postgresql://u:a'b@h/d", "l: postgresql://u:***@h/d"),
        ('l: postgresql://u:"@h/d', "l: postgresql://u:*@h/d"),
        ("l: postgresql://u:a b@h/d", "l: postgresql://u:***@h/d"),
        ("l: postgresql://h/d?password='x", "l: postgresql://h/d?password=**"),
        ("l: postgresql://h/d?password=a b", "l: postgresql://h/d?password=***"),
        (
            "l: postgresql://u@h/d?oauth_client_secret=a",
            "l: postgresql://u@h/d?oauth_client_secret=*",
        ),
        ("l: postgresql://${env:U}@h/d", None),
        ("l: postgresql://${env:U}:${env:P}@h/d", None),
        ("l: postgresql://${env:U}:a@h/d", "l: postgresql://${env:U}:*@h/d"),
        ("l: mysql://u:ab@h/d # note", "l: mysql://u:**@h/d # note"),
        (
            "l: postgresql://h/d?user=u&password=ab&x=y",
            "l: postgresql://h/d?user=u&password=**&x=y",
        ),
        ("l: postgresql://h/d?PASSWORD=a", "l: postgresql://h/d?PASSWORD=*"),
        ("l: postgresql://u@h/d?sslpassword=ab", "l: postgresql://u@h/d?sslpassword=**"),
    ],
)
def test_a_password_is_found_and_hidden(line: str, shown: str | None) -> None:
    """Whatever its characters, and as long as it was, so that a caret stays in place."""
    assert has_password(line.partition(": ")[2]) == (shown is not None)
    assert hide_passwords(line) == (shown or line)


def test_a_parameter_with_an_encoded_name_is_a_password() -> None:
    """PostgreSQL decodes names of parameters too."""
    assert has_password("postgresql://h/d?%70assword=x")
