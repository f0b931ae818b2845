"""Webhook signatures: they prove that a message comes from this server, unchanged and recent."""

from __future__ import annotations

import base64
import binascii
import hmac

PREFIX = "whsec_"
SECRET_BYTES = 32


def format_secret(random: bytes) -> str:
    """A signing secret in the form that receivers store."""
    return PREFIX + base64.b64encode(random).decode()


def signing_key(secret: str) -> bytes:
    """The key bytes of a secret: base64 after `whsec_`, otherwise the text itself."""
    if secret.startswith(PREFIX):
        try:
            return base64.b64decode(secret.removeprefix(PREFIX), validate=True)
        except binascii.Error:
            pass
    return secret.encode()


def sign(secrets: list[str], message_id: str, timestamp: int, body: bytes) -> str:
    """The header `webhook-signature` of Standard Webhooks: one signature per secret, as a rotation has two."""
    signed = f"{message_id}.{timestamp}.".encode() + body
    digests = (hmac.digest(signing_key(secret), signed, "sha256") for secret in secrets)
    return " ".join(f"v1,{base64.b64encode(digest).decode()}" for digest in digests)


def sign_octostore(secret: str, body: bytes) -> str:
    """The header `X-OctoStore-Signature`."""
    return f"sha256={hmac.digest(secret.encode(), body, 'sha256').hex()}"
