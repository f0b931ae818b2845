"""The commands of the backup guide work as shown."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

from holdfast.settings import Settings
from tests.backup.sample_store import fill

PAGE = Path(__file__).parents[2] / "docs/guides/backup.md"


def test_the_commands_of_the_guide_work_in_order(tmp_path):
    fill(Settings(store=f"sqlite:///{tmp_path}/agents.db"))
    (commands,) = re.findall(r"^```sh\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    for line in commands.splitlines():
        program, *words = shlex.split(line, comments=True)
        assert program == "holdfast"
        variables = {name: value for name, value in os.environ.items() if not name.startswith("HOLDFAST_")}
        done = subprocess.run(
            [sys.executable, "-m", program, *words],
            cwd=tmp_path,
            env=variables,
            capture_output=True,
            text=True,
            check=False,
        )
        error = "since the backup was taken work again" if words[0] == "restore" else ""
        assert done.returncode == 0, line
        assert error in done.stderr, line
        assert bool(error) == bool(done.stderr), line
    assert "no difference" in done.stdout
