"""Prompts that a person can pick: how to begin work among others, and how to hand it over."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import msgspec


class Argument(msgspec.Struct, frozen=True):
    """One blank to fill in."""

    name: str
    description: str
    required: bool = False


class Prompt(msgspec.Struct, frozen=True):
    """A text with blanks."""

    name: str
    title: str
    description: str
    arguments: tuple[Argument, ...]
    write: Callable[[Mapping[str, str]], str]


def _coordinate_work(given: Mapping[str, str]) -> str:
    you = f"You are `{given['agent']}`. " if given.get("agent") else ""
    return f"""{you}This is to be done: {given["work"]}

Other agents may see the same work. Before you touch anything:

1. Choose the name that any of them would choose for it (such as `repo/issue-1842`) and call `claim_job` with it.
2. If the status is `held`, do not start. Tell me who has it and since when, then take other work or claim again with
   `waitMs`.
3. If it is `claimed`, read `previous`: go on from the note and checkpoint that the last owner left.
4. While you work, call `heartbeat_job` with your `leaseId` at `heartbeat_every_seconds`, with a `checkpoint` and a
   `note` that would let another go on without you.
5. If any answer says `lease_lost`, stop at once and publish nothing.
6. When you are done, call `release_job` with a `note` that says what was done and what is left.

After every answer do the first of `next_actions` that is recommended."""


def _hand_over(given: Mapping[str, str]) -> str:
    to = f" to {given['to']}" if given.get("to") else ""
    return f"""Hand `{given["name"]}` over{to}, so that nobody has to begin again.

1. Put into a `checkpoint` what is done, what is half done, where it is (branches, files, addresses), and the next step.
2. Write a `note` of at most three sentences for whoever comes next: what is left, what went wrong, what to beware of.
   No keys and no other secrets belong in either.
3. If it is a job, call `release_job` with both. If it is a task, call `release_task` with both: the attempt is not
   counted.
4. Look with `get_job_owner` or `check_task_status` that both are there, and tell me.

If the release is refused, it was not yours any more: tell me who has it now, and leave it alone."""


PROMPTS = (
    Prompt(
        "coordinate_work",
        "Work among other agents",
        "Begin work that others might also begin: claim it first, keep it while you work, leave notes.",
        (
            Argument("work", "What is to be done.", required=True),
            Argument("agent", "What to call yourself."),
        ),
        _coordinate_work,
    ),
    Prompt(
        "hand_over",
        "Hand work over",
        "Give up a job or a task so that the next one can go on with it.",
        (
            Argument("name", "The job's name or the task's id.", required=True),
            Argument("to", "Who is to take over."),
        ),
        _hand_over,
    ),
)
