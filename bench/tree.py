"""Source trees that are measured: the present one, and an older commit beside it."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

ROOT = Path(__file__).parents[1]


class Tree(msgspec.Struct, frozen=True):
    """A folder with the sources of one commit. Its programs run with the present .venv."""

    folder: Path
    prefix: str = ""
    """The names of its figures begin with this."""

    def environment(self, **settings: str) -> dict[str, str]:
        """The environment of its programs. Settings of the user's shell do not reach them."""
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("HOLDFAST_")}
        return inherited | {"PYTHONPATH": f"{self.folder / 'src'}{os.pathsep}{self.folder}"} | settings

    def run_program(self, program: str, *arguments: str) -> str:
        """Run the text of a Python program, which may import `holdfast` and `bench` of this tree; gives its output."""
        command = [sys.executable, "-c", program, *arguments]
        done = subprocess.run(
            command, cwd=self.folder, env=self.environment(), check=True, stdout=subprocess.PIPE, text=True
        )
        return done.stdout


PRESENT = Tree(ROOT)


@contextmanager
def older_tree(commit: str) -> Iterator[Tree]:
    """The sources of a commit in a temporary folder."""
    with tempfile.TemporaryDirectory(prefix="hf-older-") as folder:
        archive = Path(folder) / "tree.zip"
        subprocess.run(["git", "-C", ROOT, "archive", "--output", archive, commit, "src", "bench"], check=True)  # noqa: S607
        with zipfile.ZipFile(archive) as content:
            content.extractall(folder)
        tree = Tree(Path(folder), "older.")
        imported = tree.run_program("import holdfast; print(holdfast.__file__)").strip()
        assert imported.startswith(folder), f"{commit} would not be measured, but {imported}"
        yield tree
