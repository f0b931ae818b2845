"""Settings of all history checks."""

import logging

import pytest


@pytest.fixture(autouse=True)
def _quiet(caplog):
    """The failures are planted: a report of each would hide the one that matters."""
    caplog.set_level(logging.CRITICAL, "holdfast")
