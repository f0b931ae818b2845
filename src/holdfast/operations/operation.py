"""One row of the table of operations."""

from __future__ import annotations

import msgspec

from holdfast.operations.prefix_rules import PREFIX_RULES

OCTOSTORE, ORCHESTRION, HOLDFAST_API, SYSTEM = "octostore", "orchestrion", "house", "system"
"""Families: routes compatible with OctoStore and Orchestrion, Holdfast's own, and probes and documents.

The family decides the form of errors. The values are the tags of the OpenAPI document.
"""

DISCOVERY, REGISTRATION = "discovery", "registration"
"""Rate limits by client address, for requests without a key."""


class Operation(msgspec.Struct, frozen=True):
    """One operation. `{name}` in a path is one segment, `{job_id...}` is one or more."""

    name: str
    method: str
    path: str
    family: str
    summary: str
    scope: str | None = None
    """Scopes of which the caller's key needs one, separated by spaces; None if no key is needed."""
    limit: str | None = None
    """The rate limit that it counts against."""

    @property
    def is_about_keys(self) -> bool:
        """Whether it is refused to a key that was rotated and works only for its grace period."""
        return self.name in _ABOUT_KEYS

    @property
    def error_family(self) -> str:
        """The family whose form its errors have: documents for agents are Orchestrion's routes, probes OctoStore's."""
        if self.family != SYSTEM:
            return self.family
        return ORCHESTRION if self.limit == DISCOVERY else OCTOSTORE

    @property
    def prefix_rule(self) -> str:
        """What it allows to a key that may use only names with a certain prefix."""
        return PREFIX_RULES[self.name]


_ABOUT_KEYS = {
    *("list_keys", "create_key", "read_key", "rotate_key", "rotate_own_key", "revoke_key", "rotate_token"),
    *("link_dashboard", "delete_account"),
}
