"""Webhook signatures, compared with the reference library and OctoStore's test vector."""

import base64
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from standardwebhooks import Webhook, WebhookVerificationError

from holdfast.core.webhooks.signature import format_secret, sign, sign_octostore, signing_key

BODY = (
    b'{"event":"acquired","lock":"jobs/import","holder_id":"c1a8265b-ed5d-8c5e-8c1c-6eda395b05ff","fencing_token":42,'
    b'"timestamp":"2026-08-03T01:01:03.000000001+00:00"}'
)


@given(random=st.binary(min_size=24, max_size=64), body=st.text(), message=st.from_regex(r"msg_[A-Za-z0-9_]{1,20}"))
def test_the_signature_equals_that_of_the_reference_library(random, body, message):
    secret, now = format_secret(random), datetime.now(UTC)
    signature = sign([secret], message, int(now.timestamp()), body.encode())
    assert signature == Webhook(secret).sign(message, now, body)


def test_both_secrets_of_a_rotation_sign():
    now = datetime.now(UTC)
    old, new = format_secret(b"o" * 32), format_secret(b"n" * 32)
    headers = {
        "webhook-id": "msg_1",
        "webhook-timestamp": str(int(now.timestamp())),
        "webhook-signature": sign([new, old], "msg_1", int(now.timestamp()), b'{"a":1}'),
    }
    for secret in (old, new):
        assert Webhook(secret).verify(b'{"a":1}', headers) == {"a": 1}
    with pytest.raises(WebhookVerificationError):
        Webhook(format_secret(b"x" * 32)).verify(b'{"a":1}', headers)


def test_the_octostore_signature_matches_its_test_vector():
    expected = "sha256=67c4d3f672e32ef2fe1a4cb51c68324f9ac652781be1c51c3cb7dc2050714951"
    assert sign_octostore("my-secret-key", BODY) == expected


def test_a_secret_chosen_by_a_client_signs_with_its_text():
    assert signing_key("my-secret-key") == b"my-secret-key"
    assert signing_key("whsec_not base64!") == b"whsec_not base64!"
    assert signing_key("whsec_" + base64.b64encode(b"x" * 32).decode()) == b"x" * 32
    now = datetime.now(UTC)
    judged = Webhook(base64.b64encode(b"my-secret-key").decode()).sign("m", now, "{}")
    assert sign(["my-secret-key"], "m", int(now.timestamp()), b"{}") == judged
