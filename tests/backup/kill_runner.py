"""Runs copies and kills them with SIGKILL at the n-th line of backup code that they execute.

    python -m tests.backup.kill_runner

Reads jobs from stdin, one in each line, and forks for each: fast and exact.
"""

import importlib
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

from holdfast.backup import backup, endpoint, migrate, restore
from holdfast.settings import Settings

for name in ("postgres_target", "migrate_to_postgres", "postgres_source"):
    importlib.import_module(
        f"holdfast.backup.{name}"
    )  # now, so that its import is not among the lines that are counted

ROOT = Path(__file__).parents[2]
PAGE = 7
"""Small pages, so that a copy can be killed between many of them."""


class KillRunner:
    """Sends jobs to the process that forks, and reads their results."""

    def __enter__(self):
        command = [sys.executable, "-m", "tests.backup.kill_runner"]
        self._process = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        return self

    def __exit__(self, *_):
        self._process.stdin.close()
        self._process.wait(10)
        self._process.stdout.close()

    def run(self, verb, *words, kill_at=0, **more):
        """(whether it was killed, how many lines it ran, its error); with `kill_at` it is killed at that line."""
        job = {"verb": verb, "words": [str(word) for word in words], "kill_at": kill_at, "more": more}
        self._process.stdin.write(json.dumps(job) + "\n")
        self._process.stdin.flush()
        killed, lines, error = json.loads(self._process.stdout.readline())
        return killed, lines, error


def run_job(job):
    endpoint.PAGE = PAGE
    store, *rest = job["words"]
    settings = Settings(store=store)
    if job["verb"] == "migrate":
        migrate.migrate(settings, Settings(store=rest[0]), lambda *_: None, **job["more"])
    else:
        verb = {"backup": backup.backup, "restore": restore.restore}[job["verb"]]
        verb(settings, Path(rest[0]), lambda *_: None, **job["more"])


def run_counted(job, lines):
    """Run a job and kill this process at its line; counts the lines in `lines`."""

    def trace(frame, _event, _argument):
        name = frame.f_globals.get("__name__", "")
        return each if name.startswith("holdfast.backup") else None

    def each(_frame, event, _argument):
        if event == "line":
            lines[0] += 1
            if lines[0] == job["kill_at"]:
                os.kill(os.getpid(), signal.SIGKILL)
        return each

    sys.settrace(trace)
    try:
        run_job(job)
    finally:
        sys.settrace(None)


def main():
    for line in sys.stdin:
        job = json.loads(line)
        reading, writing = os.pipe()
        child = os.fork()
        if not child:
            lines, error = [0], ""
            try:
                run_counted(job, lines)
            except Exception as error:
                error = f"{type(error).__name__}: {error}"
            os.write(writing, json.dumps([False, lines[0], error]).encode())
            os._exit(0)
        os.close(writing)
        _, status = os.waitpid(child, 0)
        with os.fdopen(reading) as answer:
            result = answer.read() or json.dumps([os.WTERMSIG(status) == signal.SIGKILL, job["kill_at"], ""])
        os.write(1, f"{result}\n".encode())


if __name__ == "__main__":
    main()
