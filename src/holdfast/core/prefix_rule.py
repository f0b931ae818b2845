"""Prefix rules: what each operation allows to a key that may use only names with a certain prefix.

Every operation declares one of these rules in `operations/prefix_rules.py`, and admission applies it before the
operation's handler does anything.
"""

from __future__ import annotations

from holdfast.core.errors import Forbidden
from holdfast.core.principal import Principal

NAMED = "named"
"""The path contains the name of a job or lock: allowed if the prefix covers that name."""
COVERED = "covered"
"""A list, log, key or several renewals: allowed, and limited by its handler to what the prefix covers."""
OWN = "own"
"""It is about the caller's own key, sessions or webhooks, or the plan of its account: allowed."""
WHOLE = "whole"
"""It reads or changes what has no name, such as tasks, webhooks and the account itself: refused."""
PUBLIC = "public"
"""It needs no key."""


def check_prefix(by: Principal, rule: str, name: str) -> None:
    """Refuse a key with a prefix an operation about another name, or about what has no name."""
    if rule == NAMED:
        check_covers(by, name)
    if rule == WHOLE and by.name_prefix is not None:
        raise Forbidden(
            f"your key covers only names that begin with {by.name_prefix}, and this operation is not limited to names: "
            "use a key without a prefix"
        )


def check_covers(by: Principal, name: str) -> None:
    """Refuse a name, or a prefix of names, that a key does not cover."""
    if not by.covers(name):
        raise Forbidden(f"your key covers only names that begin with {by.name_prefix}")
