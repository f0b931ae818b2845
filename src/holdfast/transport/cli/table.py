"""Every verb, in the order in which the help lists them."""

from __future__ import annotations

from holdfast.transport.cli.octostore.verbs import OCTOSTORE_VERBS
from holdfast.transport.cli.verbs.accounts import ELECTION_VERBS, KEY_VERBS, OWN_VERBS, SESSION_VERBS
from holdfast.transport.cli.verbs.agents import REPOSITORY_VERBS
from holdfast.transport.cli.verbs.events import LOG_VERBS
from holdfast.transport.cli.verbs.jobs import JOB_VERBS
from holdfast.transport.cli.verbs.server import SERVER_VERBS
from holdfast.transport.cli.verbs.tasks import TASK_VERBS
from holdfast.transport.cli.verbs.verb import Argument, Verb, flag, output
from holdfast.transport.cli.verbs.webhooks import WEBHOOK_VERBS

GROUPS: tuple[tuple[str, tuple[Verb, ...]], ...] = (
    ("Jobs", JOB_VERBS),
    ("Tasks", TASK_VERBS),
    ("Log and webhooks", (*LOG_VERBS, *WEBHOOK_VERBS)),
    ("Sessions, elections and keys", (*SESSION_VERBS, *ELECTION_VERBS, *KEY_VERBS)),
    ("Locks and elections as OctoStore has them", OCTOSTORE_VERBS),
    ("Agents in a repository", REPOSITORY_VERBS),
    ("Server and command line", (*SERVER_VERBS, *OWN_VERBS)),
)
VERBS = {verb.name: verb for _, verbs in GROUPS for verb in verbs}

COMMON: tuple[Argument, ...] = (
    output("how to answer (text)"),
    flag("--url", "url", "URL", "which server ($HOLDFAST_URL, or http://127.0.0.1:7700)"),
    flag(
        "--key-file", "key_file", "FILE", "a file with the key that only you can read, - for stdin ($HOLDFAST_API_KEY)"
    ),
)
"""What every verb takes that asks a server."""


def arguments_of(verb: Verb) -> tuple[Argument, ...]:
    return (*verb.arguments, *COMMON) if verb.asks else verb.arguments


def find(words: list[str]) -> tuple[Verb | None, list[str]]:
    """The verb that the words begin with, of two words or one, and the rest."""
    for length in (2, 1):
        verb = VERBS.get(" ".join(words[:length]))
        if verb is not None and len(words) >= length:
            return verb, words[length:]
    return None, words
