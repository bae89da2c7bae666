"""Who has a certificate and the public key can tell who signed it, and that it is unchanged."""

from __future__ import annotations

import json
import sys
from base64 import b64decode
from hashlib import sha256
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, generate_private_key
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
)

from infold.cli import cli

KEY = Ed25519PrivateKey.from_private_bytes(bytes(range(32)))
PUBLIC = KEY.public_key()
PUBLIC_PEM = PUBLIC.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo).decode()
FORM = (Encoding.PEM, PrivateFormat.PKCS8)
CONFIG = """\
name: shop
sources:
  raw.clicks: {path: "landing/*.json", columns: {who: string}}
erasures:
  person: {raw.clicks: who}
targets:
  dev: {erasure_secret: "${env:ERASED_BY}", erasure_certificate_key: "${env:SIGNED_BY}"}
"""
MODEL = "---\nmaterialization: table\n---\nSELECT who FROM raw.clicks\n"


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with a key, in which somebody with rows in a file of a source was erased."""
    monkeypatch.setenv("ERASED_BY", "one that nobody guesses")
    monkeypatch.setenv("SIGNED_BY", KEY.private_bytes(*FORM, NoEncryption()).decode())
    for name in ("models", "landing"):
        (tmp_path / name).mkdir()
    (tmp_path / "models" / "clicks.sql").write_text(MODEL)
    (tmp_path / "landing" / "für\u007f 😀.json").write_text('{"who": "mallory"}')
    (tmp_path / "infold.yml").write_text(CONFIG)
    done = infold(tmp_path, "erase", "person", "--value", "mallory", "--later")
    assert done.exit_code == 0, done.output
    return tmp_path


def infold(shop: Path, *words: str) -> Result:
    """A command in the project."""
    return CliRunner().invoke(cli, ["-C", str(shop), *words])


def test_a_signature(shop: Path) -> None:
    """It is of the printed certificate, in the form that is documented, and of no other."""
    certificate = json.loads(infold(shop, "erase", "--prove", "--json").stdout)
    text = infold(shop, "erase", "--prove").stdout

    assert certificate.pop("public_key") == PUBLIC_PEM
    signature = b64decode(certificate.pop("signature"), validate=True)
    content = json.dumps(certificate, sort_keys=True, separators=(",", ":")).encode("ascii")
    PUBLIC.verify(signature, content)
    assert rb"f\u00fcr\u007f \ud83d\ude00" in content
    with pytest.raises(InvalidSignature):
        PUBLIC.verify(signature, content.replace(b'"rows":1', b'"rows":0'))
    der = PUBLIC.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    assert sha256(der).hexdigest() in text


OTHER = "it is of another algorithm than Ed25519"
UNKNOWN_CURVE = """\
-----BEGIN PRIVATE KEY-----
ME4CAQAwEAYHKoZIzj0CAQYFK4EEAAYENzA1AgEBBA5WPKBuKhcbkv5sN+lAmaEg
Ax4ABBFq2n/acGiMNbUQssSPJNjk4AsiHClrVdtNdu8=
-----END PRIVATE KEY-----
"""
"""One of secp112r1, which cryptography does not know."""
KEYS = (
    ("it is encrypted", KEY.private_bytes(*FORM, BestAvailableEncryption(b"secret")).decode()),
    (OTHER, generate_private_key(SECP256R1()).private_bytes(*FORM, NoEncryption()).decode()),
    (OTHER, UNKNOWN_CURVE),
    ("it is no private key in PEM", PUBLIC_PEM),
)


@pytest.mark.parametrize(("why", "key"), KEYS, ids=("encrypted", "other", "curve", "public"))
def test_a_key_that_cannot_sign(
    shop: Path, why: str, key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The error says where it is named and why, and nothing of it."""
    monkeypatch.setenv("SIGNED_BY", key)
    done = infold(shop, "erase", "--prove")
    assert done.exit_code == 2
    assert done.stdout == ""
    lines = done.stderr.splitlines()
    assert lines[0].startswith("bad-certificate-key: ")
    assert lines[2:4] == ["  key:  ${env:SIGNED_BY}", f"  why:  {why}"]
    assert not any(part in done.stderr for part in key.splitlines())


def test_no_key(shop: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that is not there is an error. Without one no library is needed, and nothing signed."""
    monkeypatch.delenv("SIGNED_BY")
    assert infold(shop, "erase", "--prove").stderr.startswith("secret-missing: ")
    monkeypatch.setenv("SIGNED_BY", "any")
    monkeypatch.setitem(sys.modules, "cryptography.exceptions", None)
    missing = infold(shop, "erase", "--prove")
    assert missing.stderr.startswith("package-missing: ")

    config = CONFIG.replace(', erasure_certificate_key: "${env:SIGNED_BY}"', "")
    (shop / "infold.yml").write_text(config)
    plain = infold(shop, "erase", "--prove", "--json")
    assert json.loads(plain.stdout).keys().isdisjoint({"signature", "public_key"})
    assert "Signed" not in infold(shop, "erase", "--prove").stdout
