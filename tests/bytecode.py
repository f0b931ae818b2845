"""Compiles the sources from the last file backwards while the tests are collected from the first file forwards.

In a fresh clone half of the collection is compiling, on one core. This uses the second one.
"""

from __future__ import annotations

import importlib.util
import os
import py_compile
from fnmatch import fnmatch
from pathlib import Path

import pytest
from _pytest.assertion import rewrite

ROOT = Path(__file__).parents[1]


def compile_in_background(config: pytest.Config) -> None:
    """Fork a process that compiles what has not been compiled yet, and ends."""
    if os.environ.get("PYTHONDONTWRITEBYTECODE") or os.fork():
        return
    try:
        _compile_all(config)
    finally:
        os._exit(0)


def _compile_all(config: pytest.Config) -> None:
    patterns = config.getini("python_files")
    for path in sorted((ROOT / "src").rglob("*.py"), reverse=True):
        if not Path(importlib.util.cache_from_source(str(path))).exists():
            py_compile.compile(str(path), quiet=2)
    for path in sorted((ROOT / "tests").rglob("*.py"), reverse=True):
        if path.name == "conftest.py" or any(fnmatch(path.name, pattern) for pattern in patterns):
            _compile_test(path, config)


def _compile_test(path: Path, config: pytest.Config) -> None:
    """Compile a file as pytest does, which rewrites its assertions."""
    compiled = rewrite.get_cache_dir(path) / (path.stem + rewrite.PYC_TAIL)
    if not compiled.exists():
        compiled.parent.mkdir(exist_ok=True)
        stat, code = rewrite._rewrite_test(path, config)
        rewrite._write_pyc(config.stash[rewrite.assertstate_key], code, stat, compiled)
