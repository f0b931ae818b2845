"""Changes a JSON text and leaves every other byte of it: comments, order and indentation.

An added member is written first in its object or array, so that removing it restores the former text. Objects and
arrays that had to be created for it are removed with it. One that existed and was empty is kept: its new content
begins on the line of the opening brace, which marks the case. Comments and trailing commas are accepted.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any, NamedTuple

_SPACE = re.compile(r"(?:[\s\ufeff]|//[^\n]*|/\*.*?\*/)*", re.DOTALL)
_COMMENT_OR_STRING = re.compile(r'"(?:[^"\\]|\\.)*"|//[^\n]*|/\*.*?\*/|,(?=(?:\s|//[^\n]*|/\*.*?\*/)*[\]}])', re.DOTALL)
_STRING = re.compile(r'"(?:[^"\\]|\\.)*"')
_SCALAR = re.compile(r"[^\s,\]}/]+")
_CLOSING = {"{": "}", "[": "]"}


class Element(NamedTuple):
    """A member of an object or an item of an array, and where it is in the text."""

    key: str | int
    start: int
    """Where its key begins, or the item itself."""
    value: int
    end: int


def parse(text: str) -> Any:
    """The value of a text, which may have comments and trailing commas. Raises ValueError."""
    return json.loads(_COMMENT_OR_STRING.sub(_keep_string, text.removeprefix("\ufeff")))


def add(text: str, path: tuple[str, ...], key: str | None, value: Any) -> str:
    """The text with a member in the object at this path, or with an item (no key) in the array at this path.

    From an empty text a whole document is made.
    """
    if not text:
        return json.dumps(_nest(path, key, value), indent=2, ensure_ascii=False) + "\n"
    container, found = _find(text, path)
    missing = path[found:]
    if missing:
        key, value = missing[0], _nest(missing[1:], key, value)
    unit, newline = _indentation(text), "\r\n" if "\r\n" in text else "\n"
    margin = unit * (found + 1)
    shown = json.dumps(value, indent=unit, ensure_ascii=False).replace("\n", f"\n{margin}")
    entry = (shown if key is None else f"{json.dumps(key)}: {shown}").replace("\n", newline)
    is_empty = not elements(text, container)
    before, after = (" ", "") if is_empty else (f"{newline}{margin}", ",")
    return f"{text[: container + 1]}{before}{entry}{after}{text[container + 1 :]}"


def remove(text: str, path: tuple[str, ...], is_ours: Callable[[str | int, Any], bool]) -> str:
    """The text without these members or items of the container at this path, and without what was added for them.

    It is empty if nothing else is left of a document that `add` made.
    """
    while text:
        container, found = _find(text, path)
        if found < len(path):
            return text
        ours = [each for each in elements(text, container) if is_ours(each.key, parse(text[each.value : each.end]))]
        if not ours:
            return text
        text = _cut(text, path, ours[0])
    return text


def _cut(text: str, path: tuple[str, ...], element: Element) -> str:
    """The text without one element of the container at this path; the container too, if it was added with it."""
    container, _ = _find(text, path)
    others = elements(text, container)
    place = others.index(element)
    if len(others) == 1 and "\n" in text[container : element.start]:
        if not path:
            return ""
        parent, _ = _find(text, path[:-1])
        return _cut(text, path[:-1], next(each for each in elements(text, parent) if each.key == path[-1]))
    if place > 0:
        return text[: others[place - 1].end] + text[element.end :]
    comma = re.compile(r"\s*,").match(text, element.end)
    return text[: container + 1] + text[comma.end() if comma and len(others) > 1 else element.end :]


def elements(text: str, container: int) -> list[Element]:
    """The members or items of the object or array that begins at this place."""
    found: list[Element] = []
    place, is_object = _skip(text, container + 1), text[container] == "{"
    while text[place] != _CLOSING[text[container]]:
        start = place
        key: str | int = len(found)
        if is_object:
            end = _end(text, place)
            key = json.loads(text[place:end])
            place = _skip(text, _skip(text, end) + 1)
        end = _end(text, place)
        found.append(Element(key, start, place, end))
        place = _skip(text, end)
        if text[place] == ",":
            place = _skip(text, place + 1)
    return found


def _end(text: str, start: int) -> int:
    """Where the value that begins at this place ends."""
    if text[start] == '"':
        match = _STRING.match(text, start)
    elif text[start] in _CLOSING:
        last = elements(text, start)
        place = _skip(text, last[-1].end if last else start + 1)
        return (_skip(text, place + 1) if text[place] == "," else place) + 1
    else:
        match = _SCALAR.match(text, start)
    assert match is not None
    return match.end()


def _find(text: str, path: tuple[str, ...]) -> tuple[int, int]:
    """Where the container at this path begins, or the innermost around it, and how many of its keys there are."""
    place = _skip(text, 0)
    for number, key in enumerate(path):
        member = next((each for each in elements(text, place) if each.key == key), None)
        if member is None:
            return place, number
        place = member.value
        if text[place] not in _CLOSING:
            raise ValueError(f"{key!r} is neither an object nor a list")
    return place, len(path)


def _nest(path: tuple[str, ...], key: str | None, value: Any) -> Any:
    """A value inside the containers of a path."""
    nested: Any = [value] if key is None else {key: value}
    for name in reversed(path):
        nested = {name: nested}
    return nested


def _indentation(text: str) -> str:
    """What the first member of the document is indented by, if it is on a line of its own."""
    match = re.match(r"\s*{\s*\n([ \t]+)", text.removeprefix("\ufeff"))
    return match[1] if match else "  "


def _skip(text: str, place: int) -> int:
    match = _SPACE.match(text, place)
    return match.end() if match else place


def _keep_string(match: re.Match[str]) -> str:
    return match[0] if match[0].startswith('"') else ""
