"""Verbs import nothing heavy. The test compares imported modules, because times vary."""

import functools
import re
import subprocess
import sys

import pytest

HEAVY = {"httpx2", "uvicorn", "apsw", "psycopg", "asyncio", "holdfast.engine", "holdfast.store", "concurrent.futures"}
NO_NETWORK = {"http.client", "ssl", "msgspec", "holdfast.operations.table", "json"}


def imported(shell, *words):
    """The modules that a verb imports."""
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "holdfast", *words],
        env=shell.environment,
        capture_output=True,
        text=True,
        check=False,
    )
    modules = set(re.findall(r"^import time:.*\| +(\S+)$", done.stderr, re.MULTILINE))
    return modules - already()


@functools.cache
def already():
    """Modules that Python imports by itself."""
    done = subprocess.run([sys.executable, "-X", "importtime", "-c", ""], capture_output=True, text=True, check=True)
    return set(re.findall(r"^import time:.*\| +(\S+)$", done.stderr, re.MULTILINE))


@pytest.mark.parametrize("words", [["owner", "x"], ["claim", "x"], ["next", "x"], ["run", "y", "--", "true"]])
def test_verbs_import_nothing_heavy(shell, words):
    modules = imported(shell, *words)
    assert "http.client" in modules, "the verb was not carried out"
    assert not modules & HEAVY


@pytest.mark.parametrize("words", [["--help"], ["--version"], ["claim", "--help"], ["task"], ["no-such-verb"]])
def test_help_imports_next_to_nothing(shell, words):
    modules = imported(shell, *words)
    assert "holdfast.transport.cli.table" in modules
    assert not modules & (HEAVY | NO_NETWORK)
