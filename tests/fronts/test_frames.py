"""Frames between a front and the engine: every command, outcome and error arrives as it was sent."""

import inspect

import msgspec
import pytest

from holdfast.core import errors
from holdfast.core.errors import HoldfastError, Invalid, Limited, TaskMissing
from holdfast.engine.command import Command, Held, Outcome, Replayed
from holdfast.engine.verbs.batch import Batch, Outcomes
from holdfast.engine.verbs.job_claims import Claimed
from holdfast.store.memory import MemoryStore
from holdfast.transport.fronts import frames
from tests.support import START, a_lease, claim, heartbeat, release, run
from tests.task_commands import BASE, a_task, beat, begin, cancel, complete, create, fail, release_task, take, take_this

COMMANDS = [
    claim(metadata='{"a": 1}', session_id="s1"),
    heartbeat(note="näher", checkpoint="[1]"),
    release(token=5),
    create("t1", payload='{"deep": [1, 2]}'),
    take("work", "more", limit=3),
    take_this("t1"),
    beat("t1"),
    complete("t1"),
    fail("t1", reason="no"),
    release_task("t1"),
    cancel("t1"),
    begin("s1"),
    Batch(**BASE, items=(create("t1"), complete("t2"), cancel("t3"))),
]
OUTCOMES = [
    Claimed(lease=a_lease(), now=START, lease_id="l1", previous=None, previous_checkpoint=None),
    Held(lease=a_lease(), now=START, waiting=3),
    Replayed(200, b"\xff{}"),
    Outcomes(each=(Held(lease=a_lease(), now=START), Replayed(201, b"x"), TaskMissing("no task")), now=START),
]
ERRORS = [kind for _, kind in inspect.getmembers(errors, inspect.isclass) if issubclass(kind, HoldfastError)]


def sent(*values):
    """What arrives of these values, in one frame and in pieces of seven bytes."""
    content = frames.frame([frames.message(number, value) for number, value in enumerate(values)])
    reading, arrived = frames.Frames(), []
    for start in range(0, len(content), 7):
        arrived += reading.feed(content[start : start + 7])
    assert [number for number, _, _ in arrived] == list(range(len(values)))
    return [frames.read(kind, each) for _, kind, each in arrived]


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: type(command).__name__)
def test_a_command_arrives_as_it_was_sent(command):
    (arrived,) = sent(command)
    assert arrived == command
    assert type(arrived) is type(command)


def test_a_frame_has_several_messages():
    assert sent(*COMMANDS) == COMMANDS


@pytest.mark.parametrize("outcome", OUTCOMES[:-1], ids=lambda outcome: type(outcome).__name__)
def test_an_outcome_arrives_as_it_was_sent(outcome):
    (arrived,) = sent(outcome)
    assert arrived == outcome
    assert type(arrived) is type(outcome)


def test_the_outcomes_of_a_batch_arrive_with_their_types_and_errors():
    (arrived,) = sent(OUTCOMES[-1])
    assert arrived.each[:2] == OUTCOMES[-1].each[:2]
    assert type(arrived.each[2]) is TaskMissing
    assert arrived.each[2].message == "no task"


@pytest.mark.parametrize("kind", ERRORS)
def test_every_error_arrives_with_its_type_and_facts(kind):
    error = kind.__new__(kind)
    Exception.__init__(error, "what is wrong")
    vars(error).update(message="what is wrong", facts={"token": 3}, retry_after=5, errors=[{"pointer": "/a"}])
    (arrived,) = sent(error)
    assert type(arrived) is kind
    assert vars(arrived) == vars(error)
    assert str(arrived) == "what is wrong"


@pytest.mark.parametrize("error", [Invalid("bad", [{"pointer": "/x"}]), Limited("later", retry_after=7, plan="pro")])
def test_errors_that_were_raised_arrive(error):
    (arrived,) = sent(error)
    assert vars(arrived) == vars(error)


def test_an_unexpected_error_arrives_as_text():
    (arrived,) = sent(ValueError("odd"))
    assert type(arrived) is RuntimeError
    assert "odd" in str(arrived)


def test_every_command_and_outcome_has_a_number_and_a_decoder():
    def below(kind):
        return {kind}.union(*map(below, kind.__subclasses__()))

    for kind in below(Command) | below(Outcome):
        assert frames._decoder(frames._numbers()[kind])


def test_outcomes_of_commands_that_ran_arrive(clock):
    store = MemoryStore(clock)
    for command in [claim(), create("t1"), take("work"), complete("t1")]:
        outcome = run(store, command)
        assert sent(outcome) == [outcome]
    assert a_task().id == "t1"


@pytest.mark.parametrize("content", [b"\xff\xff\xff\xff", b"\x01\x00\x00\x00\xc1", b"\x03\x00\x00\x00abc"])
def test_what_is_no_frame_is_refused(content):
    with pytest.raises(frames.BadFrame):
        list(frames.Frames().feed(content))


def test_the_version_follows_the_fields(monkeypatch):
    before = frames.version()
    frames.version.cache_clear()

    class Other(msgspec.Struct):
        name: str

    monkeypatch.setattr(frames, "_types", lambda: [Other])
    assert frames.version() != before
    frames.version.cache_clear()
