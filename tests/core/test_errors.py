"""The error tree: its drawing in core/errors.py matches the classes, and every error has a code and a hint."""

from __future__ import annotations

import re

import pytest

from holdfast.core import errors
from holdfast.core.errors import HoldfastError, Refused, Trouble


def drawn_tree():
    """{child: parent} as the docstring draws it; the two roots are children of HoldfastError."""
    parents, path = {}, []
    for line in (errors.__doc__ or "").splitlines():
        found = re.match(r"((?:[│ ] {3})*(?:[├└]── )?)([A-Z]\w+)(?:\s{2,}|$)", line)
        if found is None:
            continue
        depth = len(found[1]) // 4
        path = [*path[:depth], found[2]]
        parents[found[2]] = path[-2] if depth else HoldfastError.__name__
    return parents


def real_tree(root=HoldfastError):
    return {child.__name__: root.__name__ for child in root.__subclasses__() if child.__module__ == errors.__name__} | {
        name: parent for child in root.__subclasses__() for name, parent in real_tree(child).items()
    }


EVERY = [getattr(errors, name) for name in real_tree()]


def test_the_documented_error_tree_matches_the_classes():
    assert drawn_tree() == real_tree()
    assert len(EVERY) > 20


@pytest.mark.parametrize("error", [error for error in EVERY if error is not Refused])
def test_every_error_has_a_code_and_a_next_step(error):
    assert re.fullmatch(r"[a-z]+(_[a-z]+)*", error.code)
    assert error.hint.endswith(".")
    assert error.__doc__


def test_error_codes_are_unique():
    owners = {}
    for error in EVERY:
        if "code" in vars(error):
            assert owners.setdefault(error.code, error) is error, f"{error.code} is taken"


@pytest.mark.parametrize("error", [error for error in EVERY if issubclass(error, Trouble)])
def test_trouble_has_applied_and_retry_after(error):
    assert error.applied == ("unknown" if error in {errors.OutcomeUnknown, errors.PaymentUnavailable} else "no")
    assert error.retry_after >= 1


def test_an_error_carries_its_message_and_facts():
    error = errors.LeaseLost("gone", held_by="bob")
    assert (str(error), error.message, error.facts) == ("gone", "gone", {"held_by": "bob"})
