"""Handlers with typed payloads: what they get, and how a payload of another shape fails."""

import datetime as dt
import pathlib
from dataclasses import dataclass, field
from typing import Annotated

import msgspec
import pydantic
import pytest

import holdfast


@dataclass
class Size:
    width: int
    height: int = 100


@dataclass
class DataclassResize:
    path: str
    size: Size
    by_page: dict[int, str] = field(default_factory=dict)
    due: dt.date | None = None


class StructSize(msgspec.Struct):
    width: Annotated[int, msgspec.Meta(gt=0)]
    height: int = 100


class StructResize(msgspec.Struct):
    path: str
    size: StructSize
    by_page: dict[int, str] = {}
    due: dt.date | None = None


class ModelSize(pydantic.BaseModel):
    width: int
    height: int = 100


class ModelResize(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(strict=True)
    path: str
    size: ModelSize
    by_page: dict[int, str] = {}
    due: dt.date | None = None


@pydantic.dataclasses.dataclass
class PydanticDataclassResize:
    path: str
    size: ModelSize
    by_page: dict[int, str] = pydantic.Field(default_factory=dict)
    due: dt.date | None = None


TYPES = [DataclassResize, StructResize, ModelResize, PydanticDataclassResize]


@pytest.fixture
def memory():
    with holdfast.open(":memory:") as client:
        yield client


@pytest.mark.parametrize("of", TYPES)
def test_plain_and_async_handlers_get_an_object_of_their_type(memory, of):
    worker, seen = holdfast.Worker(memory), []

    @worker.task("sync", payload=of)
    def resize(context):
        seen.append(context.payload)

    @worker.task("async", payload=of)
    async def resize_later(context):
        seen.append(context.payload)

    sent = {"path": "a.png", "size": {"width": 640}, "by_page": {"3": "left"}, "due": "2026-12-24", "more": True}
    for kind in ("sync", "async"):
        memory.create_task(kind, sent)
    assert worker.run_until_idle() == 2
    for payload in seen:
        assert type(payload) is of
        assert (payload.path, payload.size.width, payload.size.height) == ("a.png", 640, 100)
        assert (payload.by_page, payload.due) == ({3: "left"}, dt.date(2026, 12, 24))
    assert len(seen) == 2


@pytest.mark.parametrize("of", TYPES)
@pytest.mark.parametrize(
    ("payload", "field"),
    [({"path": "a.png", "size": {"width": "wide"}}, "$.size.width"), ({"path": "a.png"}, "size")],
    ids=["wrong", "missing"],
)
def test_a_payload_of_another_shape_fails_for_good_and_names_the_field(memory, of, payload, field):
    worker, called = holdfast.Worker(memory), []
    worker.task("resize", payload=of)(called.append)
    task = memory.create_task("resize", payload)
    worker.run_until_idle()
    after = memory.check_task_status(task["id"])
    assert (after["status"], after["deadLetterCause"], after["attemptCount"]) == ("dead_letter", "permanent", 1)
    assert after["previousAttempt"]["errorCode"] == "PayloadMismatch"
    assert of.__name__ in after["failureReason"]
    assert f"{field}`" in after["failureReason"]
    assert not called


def test_a_refused_value_names_its_field_too(memory):
    worker = holdfast.Worker(memory)
    worker.task("resize", payload=StructResize)(lambda context: None)
    task = memory.create_task("resize", {"path": "a.png", "size": {"width": 0}})
    worker.run_until_idle()
    reason = memory.check_task_status(task["id"])["failureReason"]
    assert reason == "the payload does not match StructResize: Expected `int` >= 1 - at `$.size.width`"


@dataclass
class WithPath:
    path: pathlib.Path


@pytest.mark.parametrize("of", [dict, pathlib.Path, WithPath, "Size", Size(1), int])
def test_a_type_that_no_payload_can_have_is_refused_where_it_is_given(memory, of):
    with pytest.raises(TypeError):
        holdfast.Worker(memory).task("resize", payload=of)
