"""How the files that `init` writes name this program: a host runs it for its hooks and as an MCP server."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

from holdfast import extras
from holdfast.transport.cli.hosts.files import NAME
from holdfast.transport.cli.output import print_message

_NOT_FOUND = f"""\
holdfast: `{NAME}` is not on the PATH of every terminal
  the files name {{}}: they work on this machine only
  next: before you commit them, install {NAME} for your user and run this again in a new terminal;
        in a checkout of Holdfast: `uv tool install '.[mcp]'` or `pipx install '.[mcp]'`
"""


def find_program() -> str:
    """Its name if hosts find it on the PATH, else its path; prints what the user should know about that."""
    if not extras.is_installed(extras.MCP):
        print_message(f"holdfast: the tools need MCP, which is not installed: {extras.install_command(extras.MCP)}")
    if shutil.which(NAME, path=_lasting_path()) is not None:
        return NAME
    own = _own_path()
    if own is None:
        print_message(f"holdfast: `{NAME}` is not on the PATH: hooks and tools do nothing until it is")
        return NAME
    for line in _NOT_FOUND.format(own).splitlines():
        print_message(line)
    return str(own)


def _lasting_path() -> str:
    """The PATH without the virtual environment that is active in this terminal: others do not have it."""
    active = os.environ.get("VIRTUAL_ENV")
    folders = os.environ.get("PATH", os.defpath).split(os.pathsep)
    return os.pathsep.join(each for each in folders if not active or Path(each) != Path(active, "bin"))


def _own_path() -> Path | None:
    """The program that runs, or the one beside this Python."""
    candidates = (Path(sys.argv[0]).absolute(), Path(sys.executable).parent / NAME)
    return next((path for path in candidates if path.name == NAME and path.is_file()), None)
