"""Verbs about webhooks."""

from __future__ import annotations

from holdfast.transport.cli.verbs.jobs import CURSOR, LIMIT
from holdfast.transport.cli.verbs.verb import Verb, flag, word

_ID = word("ID", "id", "which webhook")
_FILTERS = (
    flag("--event", "events", "KIND", "only this kind: task.completed, lease.*; may be given again", many=True),
    flag("--subject", "subject", "SUBJECT", "only about this: task:…, lease:deploy/*"),
)

WEBHOOK_VERBS = (
    Verb(
        "webhook ls",
        "the account's webhooks, without their secrets",
        (),
        "list_webhooks",
        rows="webhooks",
        columns=("webhook_id", "url", "events", "subject", "state", "reason"),
    ),
    Verb(
        "webhook add",
        "be told of what happens; shows its secret this once",
        (word("ADDRESS", "address", "where: https://…"), *_FILTERS),
        "create_webhook",
        "commands.webhook",
    ),
    Verb("webhook rm", "nobody wants to be told any more", (_ID,), "delete_webhook"),
    Verb("webhook pause", "tell it nothing for now", (_ID,), "update_webhook", "commands.webhook"),
    Verb("webhook resume", "go on where it stopped", (_ID,), "update_webhook", "commands.webhook"),
    Verb(
        "webhook rotate",
        "a new secret; the old one signs beside it a while",
        (_ID, flag("--grace", "grace_seconds", "SECONDS", "for how long (86400)", int)),
        "rotate_webhook_secret",
    ),
    Verb(
        "webhook deliveries",
        "what was sent, what waits, what nobody took",
        (
            _ID,
            flag("--state", "state", "STATE", "pending, delivered or dead", choices=("pending", "delivered", "dead")),
            LIMIT,
            CURSOR,
        ),
        "list_deliveries",
        rows="deliveries",
        columns=("seq", "kind", "subject", "state", "attempts", "status", "error", "next_at"),
    ),
    Verb(
        "webhook replay",
        "send dead letters again, or one, or all after a number",
        (
            _ID,
            flag("--seq", "seq", "NUMBER", "only this one, settled or not", int),
            flag("--after", "after", "NUMBER", "all after this one, delivered or dead", int),
        ),
        "replay_deliveries",
    ),
    Verb("webhook test", "send a message that tells of nothing", (_ID,), "test_webhook"),
)
