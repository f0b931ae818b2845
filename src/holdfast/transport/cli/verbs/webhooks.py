"""Verbs for webhooks and their deliveries."""

from __future__ import annotations

from holdfast.operations import bounds
from holdfast.transport.cli.verbs.verb import CURSOR, Verb, duration, flag, limit, positional

_ID = positional("ID", "id", "id of the webhook")
_FILTERS = (
    flag("--event", "events", "KIND", "only this kind: task.completed, lease.*; may be repeated", many=True),
    flag("--subject", "subject", "SUBJECT", "only this subject: task:…, lease:deploy/*"),
)

WEBHOOK_VERBS = (
    Verb(
        "webhook ls",
        "list the account's webhooks, without their secrets",
        (),
        "list_webhooks",
        rows="webhooks",
        columns=("webhook_id", "url", "events", "subject", "state", "reason"),
    ),
    Verb(
        "webhook add",
        "create a webhook; its secret is shown only once",
        (positional("ADDRESS", "address", "where to send events: https://…"), *_FILTERS),
        "create_webhook",
        "commands.call:add_webhook",
    ),
    Verb("webhook rm", "delete a webhook", (_ID,), "delete_webhook"),
    Verb("webhook pause", "stop sending to a webhook for now", (_ID,), "update_webhook", "commands.call:pause_webhook"),
    Verb(
        "webhook resume",
        "resume a webhook: send what it missed while it was paused",
        (_ID,),
        "update_webhook",
        "commands.call:resume_webhook",
    ),
    Verb(
        "webhook rotate",
        "give a webhook a new secret",
        (
            _ID,
            duration(
                "--grace",
                "grace_seconds",
                f"for this long, messages are also signed with the old secret ({bounds.WEBHOOK_GRACE.default})",
            ),
        ),
        "rotate_webhook_secret",
    ),
    Verb(
        "webhook deliveries",
        "list deliveries: sent, waiting or dead",
        (
            _ID,
            flag("--state", "state", "STATE", "pending, delivered or dead", choices=("pending", "delivered", "dead")),
            limit(bounds.DELIVERY_PAGE),
            CURSOR,
        ),
        "list_deliveries",
        rows="deliveries",
        columns=("seq", "kind", "subject", "state", "attempts", "status", "error", "next_at"),
    ),
    Verb(
        "webhook replay",
        "send deliveries again: all dead ones, one, or all after a number",
        (
            _ID,
            flag("--seq", "seq", "NUMBER", "only this delivery, in any state", int),
            flag("--after", "after", "NUMBER", "all deliveries after this one, delivered or dead", int),
        ),
        "replay_deliveries",
    ),
    Verb("webhook test", "send a test message", (_ID,), "test_webhook"),
)
