"""Certificates of erasure that somebody else can check: signed by a key of Ed25519."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Mapping
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from infold.core.project import Project
from infold.messages import command_errors
from infold.system import secrets

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey


def signing_key(project: Project) -> Ed25519PrivateKey | None:
    """
    The key that certificates of the target are signed with; None where it names none.

    Raises ``run_errors.secret_missing``, ``command_errors.package_missing`` and
    ``command_errors.bad_certificate_key``.
    """
    reference = project.target.erasure_certificate_key
    if not reference:
        return None
    pem = secrets.resolve(reference, project.root, "erasure_certificate_key")
    try:
        from cryptography.exceptions import UnsupportedAlgorithm
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
        from cryptography.hazmat.primitives.serialization import load_pem_private_key
    except ImportError as error:
        raise command_errors.package_missing(
            method="a signature by `erasure_certificate_key`", package="cryptography"
        ) from error
    why = "it is of another algorithm than Ed25519"
    try:
        key = load_pem_private_key(pem.encode(), password=None)
        if isinstance(key, Ed25519PrivateKey):
            return key
    except TypeError:
        why = "it is encrypted"
    except ValueError:
        why = "it is no private key in PEM"
    except UnsupportedAlgorithm:
        pass
    raise command_errors.bad_certificate_key(reference=reference, why=why)


def fingerprint_of(key: Ed25519PrivateKey) -> str:
    """The SHA-256 of the public key in DER, in hexadecimal digits."""
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

    public = key.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    return sha256(public).hexdigest()


def signed(certificate: Mapping[str, Any], key: Ed25519PrivateKey) -> dict[str, Any]:
    """
    A certificate with the ``signature`` of its canonical form (in base64), and ``public_key``.

    That form is JSON in ASCII, with sorted keys and no blanks: any parser of JSON leads to it.
    """
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

    content = json.dumps(certificate, sort_keys=True, separators=(",", ":")).encode()
    public = key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    return {
        **certificate,
        "signature": b64encode(key.sign(content)).decode(),
        "public_key": public.decode(),
    }
