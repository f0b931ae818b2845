"""Settings that are secret: the root and admin keys, static tokens, the PayPal merchant."""

from __future__ import annotations

import re
import stat
from pathlib import Path
from typing import Any

from holdfast.core.principal import is_well_formed
from holdfast.settings.field import PREFIX
from holdfast.settings.fields import PAYPAL_URL
from holdfast.settings.reader import Reader

MIN_TOKEN = 24
_FORM = "visible ASCII characters without spaces"
_SHORTER = f" ({PREFIX}ALLOW_SHORT_TOKENS=true accepts shorter ones)"
_WRONG_CHECKSUM = "it looks like one of our keys, but its checksum is wrong"


def read_secret(reader: Reader, name: str) -> str | None:
    """The root key or the admin key; its value is never repeated in a problem."""
    secret = reader.text(name)
    if secret is None:
        return None
    problem = _weakness(reader, "admin key", secret) if name == "admin_key" else _form_problem(secret)
    if problem is not None:
        reader.add_problem(name, problem)
    elif not is_well_formed(secret):
        reader.add_problem(name, _WRONG_CHECKSUM)
    return secret


def read_static_tokens(reader: Reader, other_keys: set[str]) -> tuple[tuple[str, str], ...]:
    """(name, token) of every named key; names and tokens must differ from each other and from the other keys."""
    found: list[tuple[str, str]] = []
    listed = reader.text("static_tokens")
    if listed is not None:
        found += _parse_tokens(reader, f"{PREFIX}STATIC_TOKENS", listed)
    path = reader.text("static_tokens_file")
    if path is not None:
        text = _read_private_file(reader, path)
        found += [] if text is None else _parse_tokens(reader, f"{PREFIX}STATIC_TOKENS_FILE", text)
    names = [name.lower() for name, _ in found]
    for name in sorted({name for name in names if names.count(name) > 1}):
        reader.problems.append(f"static tokens: the name {name!r} is listed twice")
    tokens = [token for _, token in found]
    if len(tokens) != len(set(tokens)):
        reader.problems.append("static tokens: one token is listed twice")
    if other_keys & set(tokens):
        reader.problems.append("static tokens: a token equals the admin key or the root key")
    return tuple(found)


def read_paypal(reader: Reader) -> dict[str, Any]:
    """The merchant: client id and secret, both or neither."""
    client_id, secret = reader.text("paypal_client_id") or None, reader.text("paypal_secret") or None
    for name, value, other in (("CLIENT_ID", client_id, secret), ("SECRET", secret, client_id)):
        if other and not value:
            reader.problems.append(f"{PREFIX}PAYPAL_{name}: PayPal needs both the client id and the secret")
        elif value and not _is_visible(value):
            reader.problems.append(f"{PREFIX}PAYPAL_{name}: must be {_FORM}")
    url = reader.web_address("paypal_url") or PAYPAL_URL
    return {"paypal_client_id": client_id, "paypal_secret": secret, "paypal_url": url}


def _read_private_file(reader: Reader, path: str) -> str | None:
    """The text of a regular file that only its owner can read; None if it is not such a file."""
    try:
        mode = Path(path).stat().st_mode
        if not stat.S_ISREG(mode) or mode & 0o077:
            problem = f"{path} must be a regular file only its owner can read (chmod 600)"
            reader.problems.append(f"{PREFIX}STATIC_TOKENS_FILE: {problem}")
            return None
        return Path(path).read_text()
    except (OSError, UnicodeDecodeError) as error:
        reader.problems.append(f"{PREFIX}STATIC_TOKENS_FILE: cannot read {path}: {error}")
        return None


def _parse_tokens(reader: Reader, label: str, text: str) -> list[tuple[str, str]]:
    """name:token entries between commas or newlines; a bare token is named by its position."""
    found = []
    entries = [entry.strip() for entry in re.split(r"[,\n]", text)]
    entries = [entry for entry in entries if entry and not entry.startswith("#")]
    if not entries:
        reader.problems.append(f"{label}: lists no tokens")
    for position, entry in enumerate(entries, 1):
        name, colon, token = (part.strip() for part in entry.partition(":"))
        if not colon:
            name, token = f"token-{position}", name
        if not name or not token:
            reader.problems.append(f"{label}: entry {position} needs a name and a token, as name:token")
        elif not is_well_formed(token):
            reader.problems.append(f"{label}: the token of {name!r}: {_WRONG_CHECKSUM}")
        elif (problem := _weakness(reader, f"token of {name!r}", token)) is not None:
            reader.problems.append(f"{label}: the token of {name!r} {problem}")
        else:
            found.append((name, token))
    return found


def _weakness(reader: Reader, what: str, secret: str) -> str | None:
    """What is wrong with the secret of a user; one that is too short is a warning if the settings accept it."""
    problem = _form_problem(secret)
    if problem is None or not secret or not _is_visible(secret):
        return problem
    if not reader.boolean("allow_short_tokens"):
        return problem + _SHORTER
    reader.cautions.append(f"the {what} has {len(secret)} characters: it can be guessed")
    return None


def _form_problem(secret: str) -> str | None:
    is_good = len(secret) >= MIN_TOKEN and _is_visible(secret)
    return None if is_good else f"must be at least {MIN_TOKEN} {_FORM}"


def _is_visible(secret: str) -> bool:
    return all("!" <= character <= "~" for character in secret)
