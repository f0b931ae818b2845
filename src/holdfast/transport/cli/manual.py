"""Writes the page about the command line: `python -m holdfast.transport.cli.manual > docs/reference/cli.md`."""

from __future__ import annotations

from holdfast.transport.cli import exit_status
from holdfast.transport.cli import help as help_text
from holdfast.transport.cli.table import GROUPS

_INTRODUCTION = """\
# Command line

Made of what `holdfast VERB --help` prints; a test compares.

The server is `--url`, or `HOLDFAST_URL`, or `http://127.0.0.1:7700`. The key is in the file that
`--key-file` names, or in `HOLDFAST_API_KEY`, or in the keyring (if Python's `keyring` is installed: service `holdfast`,
the server's address as the name), or in `.netrc` as the password of the server's host, or in `~/.config/holdfast/key`,
which nobody else may be able to read and which is not used for a server that `--url` names; never an argument, which
others can see. A key is not sent over plain HTTP to another machine unless `HOLDFAST_ALLOW_INSECURE_HTTP` is true.
`HOLDFAST_CA_BUNDLE` names certificates to trust instead of the system's.

Results are on stdout, talk is on stderr. On a terminal answers are columns, with `NO_COLOR` without bold; elsewhere a
name, a tab and a value a line. `-o wide` shows every field and cuts nothing; `-o json` is the server's own document
on one line, `-o yaml` the same as YAML. Control characters, invisible
ones and those that turn text around are shown as codes, because agents wrote them.

```sh
holdfast run deploy/web -w 60 -- ./deploy.sh                  # one at a time, on any machine
holdfast task create review --payload '{"pr": 1842}'
holdfast next review -w 300 -o json                           # waits for work
holdfast events --follow --kind 'task.*'
```

| exit status | |
| --- | --- |
"""


def manual() -> str:
    """The whole page."""
    parts = [_INTRODUCTION.rstrip("\n")]
    parts += [f"| {status} | {meaning} |" for status, meaning in exit_status.MEANINGS.items()]
    parts += ["| other | of the command that `run` or `elect` ran; 126 or 127 if it could not be started |"]
    for title, verbs in GROUPS:
        parts += ["", f"## {title}"]
        for verb in verbs:
            parts += ["", f"### {verb.name}", "", "```", help_text.verb_help(verb), "```"]
    return "\n".join(parts) + "\n"


if __name__ == "__main__":
    print(manual(), end="")
