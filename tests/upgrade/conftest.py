"""Stores that are upgraded."""

from __future__ import annotations

import pytest


@pytest.fixture(params=["sqlite", "postgres"])
def address(request, tmp_path):
    """The address of a store that does not exist yet."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/new.db"
    return request.getfixturevalue("new_empty_postgres_database")()
