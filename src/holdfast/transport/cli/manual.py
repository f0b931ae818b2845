"""Generator of docs/reference/cli.md: `python -m holdfast.transport.cli.manual > docs/reference/cli.md`."""

from __future__ import annotations

from holdfast.transport.cli import exit_status
from holdfast.transport.cli import help as help_text
from holdfast.transport.cli.table import GROUPS

_INTRODUCTION = """\
# Command line

Generated from the output of `holdfast VERB --help`; a test compares them.

**Server.** `--url`, else `HOLDFAST_URL`, else `http://127.0.0.1:7700`. `localhost:7700` and other loopback addresses
need no scheme; those of other machines begin with `https://`. `HOLDFAST_CA_BUNDLE` names a file with certificates to
trust instead of the system's.

**Key.** The first that is found:

1. the file that `--key-file` names (`-` for stdin),
2. `HOLDFAST_API_KEY`,
3. the keyring, if Python's `keyring` is installed: service `holdfast`, user name = the server's address,
4. `.netrc`: the password of the server's host,
5. your own entry for the server in `~/.config/holdfast/servers.json`: `{"https://host": {"key": "…"}}`,
6. `~/.config/holdfast/key`, unless `--url` names the server,
7. the entry that `holdfast serve` wrote for its own address into `servers.json`: this machine's key.

On the machine of the server nothing has to be set: `serve` on a loopback address writes a key with the scopes `jobs`,
`tasks` and `read`, once for each address. It replaces an entry of its own that its store refuses, and never one of
yours. The Python client reads `HOLDFAST_API_KEY` and 5 to 7. `holdfast doctor` says what is used.

Key files must be readable only by you. A key is never an argument, because other users can list the arguments of a
process. It is not sent over plain HTTP to another machine unless `HOLDFAST_ALLOW_INSECURE_HTTP` is true.

**Lease ids.** What `claim`, `reserve`, `next` and `task claim` were granted is remembered, so `heartbeat`, `release`,
`guard`, `files heartbeat`, `files release` and the verbs of a task's holder need no `--lease`. Each server and agent
has a file in `~/.local/state/holdfast/agents`, readable only by you. The agent is `--owner` (of a task `--worker`),
else `HOLDFAST_OWNER`, else user@host (the user is `USER`, `LOGNAME`, the passwd entry, or `uid-` and the number):
give each agent of a machine a name of its own, and none releases what another claimed. A lease that was released or
lost is forgotten. `--lease` comes first, then, inside `holdfast run`, the lease of its job. `mine` lists what the key
holds.

**Durations.** Every flag with a DURATION takes seconds (`90`), or numbers with `ms`, `s`, `m`, `h` or `d`: `90s`,
`5m`, `1.5h`, `1h30m`.

**Output.** Results go to stdout, messages to stderr. On a terminal, tables have columns that fit its width, times
such as `2 min ago`, and colours by state, which `NO_COLOR` turns off; `events` and `task history` show who did what,
and not all data. Elsewhere rows are lines with tabs, and a single answer is lines with a name, a tab and a value, all
exact. `-o wide` prints every field in full, with exact times, also on a terminal; `-o json` the server's document on
one line, `-o yaml` the same as YAML. Text output shows control, invisible and bidirectional characters as codes,
because agents may have written them.

**Fields.** `--fields` prints only the values of some fields, with tabs between them, a line for each row of a list:
`lease=$(holdfast claim deploy/web --fields lease_id)`. `payload.pr` is a field inside another, `paths.0` the first of
a list; `-` stands for null. With `-o json` or `-o yaml` the document has only these fields; lists keep their shape.
The exit status still says what happened.

**Completion.** `eval "$(holdfast completion bash)"` completes verbs, flags, their values, names of held jobs and ids.

```sh
holdfast run deploy/web -w 5m -- ./deploy.sh                  # one at a time, on all machines
holdfast reserve --space acme/shop src/auth/ README.md -- ./edit.sh   # nobody else changes these files meanwhile
holdfast task create review --payload '{"pr": 1842}'
holdfast next review -w 5m -o json                            # waits for a task
holdfast task ls --status pending --fields id,payload.pr      # values alone, for scripts
holdfast events --follow --kind 'task.*'
holdfast claim deploy/api
holdfast release deploy/api                                   # the lease id is remembered
```

| exit status | |
| --- | --- |
"""


def manual() -> str:
    """The whole page."""
    parts = [_INTRODUCTION.rstrip("\n")]
    parts += [f"| {status} | {meaning} |" for status, meaning in exit_status.MEANINGS.items()]
    parts.append(
        "| other | the exit status of the command under `run`, `reserve` or `elect`; 126 or 127 if it could not be "
        "started |"
    )
    for title, verbs in GROUPS:
        parts += ["", f"## {title}"]
        for verb in verbs:
            parts += ["", f"### {verb.name}", "", "```", help_text.verb_help(verb), "```"]
    return "\n".join(parts) + "\n"


if __name__ == "__main__":
    print(manual(), end="")
