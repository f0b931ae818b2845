"""Verbs for reservations: files of a repository, exclusive or shared."""

from __future__ import annotations

from holdfast.operations import bounds
from holdfast.transport.cli.durations import parse_duration
from holdfast.transport.cli.verbs.verb import (
    CURSOR,
    HELD_STATUS,
    OFFER_TERMS,
    OWNER,
    SESSION_LEASE,
    TOKEN,
    Verb,
    duration,
    flag,
    limit,
    parse_json,
    positional,
    switch,
)

_ID = positional("ID", "id", "the reservation_id")
_SPACE = flag("--space", "space", "NAME", "the repository ($HOLDFAST_SPACE, or as in .holdfast.toml)")
_LEASE = flag("--lease", "lease_id", "ID", "the lease_id from reserve ($HOLDFAST_RESERVATION_LEASE, or remembered)")

_PATHS = """\
Paths are relative to the current folder, and reserved relative to the root of the repository: the folder of
.holdfast.toml, or else the top folder of the git repository. A folder means everything below it. Wildcards: * and ?
within a name, ** for any folders. Quote patterns, so that the shell does not expand them."""

RESERVATION_VERBS = (
    Verb(
        "reserve",
        "reserve files, all or none; with a command, while it runs. If they are held, show who holds them",
        (
            positional("PATH", "paths", "a file, a folder, or a pattern", many=True),
            positional("COMMAND", "command", "the command to run, after --", required=False, many=True),
            switch("--shared", "shared", "let others reserve them as shared too: for reading"),
            _SPACE,
            duration(
                "-w --wait", "wait_seconds", "wait for at most this long (0; with a command: no limit)", parse_duration
            ),
            switch("-n --nonblock", "nonblock", "with a command: do not wait if the files are held"),
            OWNER,
            duration(
                "--ttl",
                "ttl_seconds",
                "the reservation ends this long after the last heartbeat\n"
                f"({bounds.RESERVATION_TTL.default}; with a command: {bounds.JOB_TTL.default})",
            ),
            flag("--reason", "reason", "TEXT", "what you do with the files, visible to others"),
            flag("--metadata", "metadata", "JSON", "an object, visible to others; @file reads a file", parse_json),
            flag("--session", "session_id", "ID", "release the files when this session ends"),
            SESSION_LEASE,
            HELD_STATUS,
        ),
        "reserve_files",
        "hold.reserve:run",
        is_claim=True,
        more=f"{_PATHS}\n\n"
        "With a command, the files are reserved while it runs, as with `holdfast run`. Its environment has\n"
        "HOLDFAST_RESERVATION, HOLDFAST_RESERVATION_LEASE, HOLDFAST_TOKEN and HOLDFAST_EXPIRES_AT. Without one, renew\n"
        "the reservation with `holdfast files heartbeat` and end it with `holdfast files release`.",
    ),
    Verb(
        "files heartbeat",
        "renew a reservation",
        (
            _ID,
            _LEASE,
            duration("--ttl", "ttl_seconds", "the reservation ends this long after the last heartbeat (as before)"),
            TOKEN,
        ),
        "heartbeat_reservation",
    ),
    Verb(
        "files extend",
        "add files to a reservation, all or none, without waiting",
        (_ID, positional("PATH", "paths", "a file, a folder, or a pattern", many=True), _LEASE, TOKEN, HELD_STATUS),
        "extend_reservation",
        "commands.reservations:extend",
        is_claim=True,
        more=_PATHS,
    ),
    Verb(
        "files release",
        "release a reservation, all of it or some of its paths",
        (
            _ID,
            positional("PATH", "paths", "only these of its paths (all)", required=False, many=True),
            _LEASE,
            TOKEN,
        ),
        "release_files",
        "commands.reservations:release",
        more="A PATH is one that was reserved: a file, a folder or a pattern, written as for `holdfast reserve`.",
    ),
    Verb(
        "files check",
        "check that no other owner has reserved files that you want to change",
        (
            positional("PATH", "paths", "a file", many=True),
            _SPACE,
            flag(
                "--lease", "lease_ids", "ID", "a lease_id of yours, repeatable ($HOLDFAST_RESERVATION_LEASE)", many=True
            ),
            flag("-E", "conflict_status", "NUMBER", "exit status when a file is not allowed (9)", int),
        ),
        "check_files",
        "commands.reservations:check",
        columns=("path", "owner", "mode", "expires_in_seconds", "reason", "reservation_id"),
        more="Prints nothing if all are allowed. Otherwise the exit status is 9, and each reservation of another\n"
        "owner is a line. For hooks: `git diff --cached --name-only -z | xargs -0 holdfast files check`. Some hooks\n"
        "stop an agent only on status 2: use -E 2. Paths are relative to the current folder; a folder is not accepted.",
    ),
    Verb(
        "files ls",
        "list who has reserved what",
        (
            _SPACE,
            switch("--all-spaces", "all_spaces", "of every repository"),
            flag("--path", "path", "PATH", "only reservations that cover this file, relative to the current folder"),
            flag("--owner", "held_by", "WHO", "only those of this owner"),
            limit(bounds.RESERVATION_PAGE),
            CURSOR,
        ),
        "list_reservations",
        "commands.reservations:list_all",
        rows="reservations",
        columns=("space", "path", "owner", "mode", "expires_in_seconds", "status", "reservation_id"),
        more="Without --space, those of the current repository; outside of one, of every repository. One line a path.",
    ),
    Verb(
        "files offer",
        "offer a reservation to another agent, which takes it over with the code that is printed",
        (
            _ID,
            _LEASE,
            flag("--note", "note", "TEXT", "a note for the next owner"),
            flag("--checkpoint", "checkpoint", "JSON", "data for the next owner; @file reads a file", parse_json),
            *OFFER_TERMS,
        ),
        "offer_reservation",
        "commands.call:offer",
    ),
    Verb(
        "files claim",
        "take over a reservation that was offered",
        (
            _ID,
            flag("--offer", "offer", "CODE", "the code of the offer", required=True),
            OWNER,
            duration("--ttl", "ttl_seconds", f"{bounds.RESERVATION_TTL.with_default()}"),
            flag("--session", "session_id", "ID", "release the files when this session ends"),
            SESSION_LEASE,
        ),
        "claim_reservation",
    ),
    Verb("files get", "show a reservation, or how it ended", (_ID,), "read_reservation"),
    Verb(
        "files force-release",
        "release what another owner has reserved (needs a key with the scope admin)",
        (_ID, flag("--reason", "reason", "TEXT", "shown to the former holder", required=True)),
        "force_release_reservation",
    ),
)
