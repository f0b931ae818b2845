"""Rules for names: which job ids, lock names and election ids are allowed."""

from __future__ import annotations

import re
import unicodedata

from holdfast.core.errors import Forbidden, Invalid
from holdfast.core.limits import LOCK_PART_LIMIT, NAME_LIMIT
from holdfast.core.names.alphanumeric import is_alphanumeric

DEFAULT_ACCOUNT = "default"
ELECTION_PREFIX = "__election/"

_ELECTION_ID = re.compile(r"[A-Za-z0-9_-]{8,64}")
_CANDIDATE_ID = re.compile(r"[A-Za-z0-9._:@-]{1,64}")


def normal_job_id(text: str) -> str:
    """A job id as callers send it, in Unicode's normal form C: each job has one id, whichever form is sent."""
    return text if text.isascii() else unicodedata.normalize("NFC", text)


def is_job_id(name: str) -> bool:
    """Whether the routes for jobs reach a lease of this name; a lock may have one that they do not."""
    return job_id_problem(name) is None and normal_job_id(name) == name


def job_id_problem(job_id: str) -> str | None:
    """What is wrong with a job id in normal form, or None."""
    if not 1 <= len(job_id) <= NAME_LIMIT:
        return f"a job id has 1 to {NAME_LIMIT} characters, this one has {len(job_id)}"
    if not job_id.isprintable():
        return "a job id has only printable characters: no control, formatting or line separator characters"
    if job_id.endswith("*"):
        return "a job id must not end with *, which stands for all names with a prefix"
    between_slashes = f"/{job_id}/"
    if "//" in between_slashes or "/../" in between_slashes:
        return "no part of a job id between slashes may be empty or '..'"
    if job_id.startswith(ELECTION_PREFIX):
        return f"ids that begin with {ELECTION_PREFIX} are reserved for elections"
    return None


def lock_name_problem(name: str) -> str | None:
    """What is wrong with a lock name, or None."""
    size = len(name.encode())
    if not 1 <= size <= NAME_LIMIT:
        return f"must be 1 to {NAME_LIMIT} bytes, got {size}"
    if name.startswith("/") or name.endswith("/") or "//" in name:
        return "must not begin or end with '/' or contain '//'"
    parts = name.split("/")
    if ".." in parts:
        return "no part may be '..'"
    if not all(is_alphanumeric(character) or character in "-_./" for character in name):
        return "only letters, digits, '-', '_', '.' and '/' are allowed"
    if any(len(part.encode()) > LOCK_PART_LIMIT for part in parts):
        return f"a part between slashes is at most {LOCK_PART_LIMIT} bytes"
    return None


def check_reserved(name: str) -> None:
    """Refuse the prefix that is reserved for elections."""
    if name.startswith(ELECTION_PREFIX):
        raise Forbidden(f"names that begin with {ELECTION_PREFIX} are reserved for elections")


def election_lease_name(election_id: str) -> str:
    """The lease name of an election."""
    if not _ELECTION_ID.fullmatch(election_id):
        raise Invalid("an election id is 8 to 64 characters of A-Z a-z 0-9 _ -")
    return ELECTION_PREFIX + election_id


def check_candidate(candidate_id: str) -> None:
    """Refuse a candidate id with characters that are not allowed, or of the wrong length."""
    if not _CANDIDATE_ID.fullmatch(candidate_id):
        raise Invalid("a candidate id is 1 to 64 characters of A-Z a-z 0-9 . _ : @ -")


def is_storable(text: str) -> bool:
    """Whether every store can keep this text unchanged: no U+0000, no lone surrogate."""
    if "\0" in text:
        return False
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
