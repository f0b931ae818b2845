"""Verbs for API keys and for signing a browser in."""

from __future__ import annotations

from holdfast.operations import bounds
from holdfast.transport.cli.verbs.verb import Verb, duration, flag, positional, switch

_ID = positional("ID", "id", "id of the key")
_GRACE_HELP = f"the old secret works for this long ({bounds.KEY_GRACE.default})"
_GRACE = duration("--grace", "graceSeconds", _GRACE_HELP)

KEY_VERBS = (
    Verb("key ls", "list the account's keys, without their secrets", (), "list_keys", rows="keys",
         columns=("keyId", "name", "shown", "scopes", "prefix", "lastUsedAt", "revokedAt")),
    Verb(
        "key create",
        "create a key; its secret is shown only once",
        (
            positional("NAME", "name", "a name that says what the key is for"),
            flag("--scope", "scopes", "SCOPE", "what the key may do: admin, jobs, tasks, tasks:produce,\n"
                 "tasks:work, answer or read; may be repeated",
                 required=True, many=True),
            flag("--prefix", "prefix", "TEXT", "only jobs and locks whose names have this prefix"),
            duration("--expires-in", "expiresInSeconds", "the key stops working after this long"),
        ),
        "create_key",
    ),
    Verb(
        "key rotate",
        "give a key a new secret",
        (_ID, _GRACE),
        "rotate_key",
    ),
    Verb("key revoke", "revoke a key", (_ID,), "revoke_key"),
)  # fmt: skip

DASHBOARD_VERBS = (
    Verb(
        "dashboard",
        "print a link that signs a browser in to the dashboard",
        (switch("--open", "open", "open the link in your browser"),),
        "link_dashboard",
        "commands.call:link_dashboard",
        more="The link works once, for 10 minutes. The browser may then do what your key may do.",
    ),
)
