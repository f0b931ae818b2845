"""How large and how deep a payload and a result may be: 65,536 bytes of compact UTF-8, five levels."""

import json

import pytest

from tests.compat.orchestrion.expect import bare, created, page, refused, task
from tests.compat.orchestrion.states import held

MOST = 65_536


def of_bytes(size: int, letter: str = "x") -> dict[str, str]:
    """An object whose compact form has exactly that many bytes."""
    frame = len(json.dumps({"a": ""}, separators=(",", ":")))
    count, rest = divmod(size - frame, len(letter.encode()))
    return {"a": letter * count + "x" * rest}


def objects(levels: int) -> dict:
    return {"a": objects(levels - 1)} if levels > 1 else {"a": 1}


def lists(levels: int) -> dict:
    """One object, and lists in it down to the last level."""
    inner: object = 1
    for _ in range(levels - 1):
        inner = [inner]
    return {"a": inner}


def hollow(levels: int) -> dict:
    """The last level is empty, and still a level."""
    return {"a": hollow(levels - 1)} if levels > 1 else {}


def mixed(levels: int) -> dict:
    """Lists and objects nested in turn."""
    inner: object = "leaf"
    for level in range(levels, 1, -1):
        inner = [inner] if level % 2 == 0 else {"b": inner}
    return {"shallow": 1, "a": inner}


SHAPES = {"objects": objects, "lists": lists, "hollow": hollow, "mixed": mixed}
FITTING = {
    "65,536 bytes": of_bytes(MOST),
    "65,536 bytes of ü": of_bytes(MOST, "ü"),
    "65,536 bytes of 🦀": of_bytes(MOST, "🦀"),
    **{f"5 levels of {shape}": make(5) for shape, make in SHAPES.items()},
}
TOO_MUCH = {
    "65,537 bytes": of_bytes(MOST + 1),
    "65,537 bytes of ü": of_bytes(MOST + 1, "ü"),
    "65,537 bytes of 🦀": of_bytes(MOST + 1, "🦀"),
    **{f"6 levels of {shape}": make(6) for shape, make in SHAPES.items()},
    "40 levels": objects(40),
    "900 levels": lists(900),
    "2 MiB": of_bytes(2 * 1024 * 1024),
}


def post(account, path: str, body: object, **style: object):
    """The body as UTF-8: its letters are not escaped, so that what is sent is what is counted."""
    text = json.dumps(body, ensure_ascii=False, **style)
    return account.send("POST", path, text.encode(), Content_Type="application/json")


@pytest.mark.parametrize("payload", FITTING.values(), ids=FITTING)
def test_a_payload_within_the_limits_is_kept(account, payload):
    made = created(post(account, "/v1/tasks", {"type": "work", "payload": payload}))
    assert task(account.read_task(made["id"]))["payload"] == payload


@pytest.mark.parametrize("payload", TOO_MUCH.values(), ids=TOO_MUCH)
def test_a_payload_beyond_the_limits_is_refused_and_nothing_is_created(account, payload):
    refused(post(account, "/v1/tasks", {"type": "work", "payload": payload}), 400, "invalid_request")
    assert page(account.list())["tasks"] == []


@pytest.mark.parametrize("result", FITTING.values(), ids=FITTING)
def test_a_result_within_the_limits_is_kept(account, result):
    mine = held(account)
    assert task(post(account, f"/v1/tasks/{mine['id']}/complete", {"result": result}))["result"] == result


@pytest.mark.parametrize("result", TOO_MUCH.values(), ids=TOO_MUCH)
def test_a_result_beyond_the_limits_is_refused_and_the_task_stays_claimed(account, result):
    mine = task(account.read_task(held(account)["id"]))
    refused(post(account, f"/v1/tasks/{mine['id']}/complete", {"result": result}), 400, "invalid_request")
    assert bare(task(account.read_task(mine["id"]))) == bare(mine)


def test_white_space_does_not_count(account):
    payload = {"numbers": list(range(9000))}
    body = {"type": "work", "payload": payload}
    assert len(json.dumps(payload, separators=(",", ":"))) < MOST < len(json.dumps(payload, indent=4))
    assert created(post(account, "/v1/tasks", body, indent=4))["payload"] == payload
