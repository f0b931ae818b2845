"""Generated task rows with independent columns: every combination that a database may have to store."""

from __future__ import annotations

import msgspec
from hypothesis import strategies as st

from holdfast.core.task import CLAIMED, DEAD, FINAL_STATES, LIVE_STATES, PENDING, STATES, Task, within_limits
from tests.support import START

accounts = st.sampled_from(["a", "b"])
types = st.sampled_from(["x", "y"])
instants = st.integers(START - 2, START + 2)
required = st.none() | st.none() | st.sampled_from(["cpu", "cpu,gpu", "gpu", "gpu,repo:shop"])
numbers = st.integers(-(2**53), 2**53) | st.sampled_from([0, 1, 2**62])
texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=6)
documents = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | texts,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(texts, inner, max_size=2),
    max_leaves=4,
).map(lambda value: msgspec.json.encode(value).decode())


SHAPED_COLUMNS = {
    "ended": '{"worker":null,"outcome":"failed","at":1,"attempt":1,"proof":"p"}',
    "backoff": '{"kind":"fixed"}',
    "depends_on": '["t0","t9"]',
    "answered": '{"id":"q","question":"?","answer":"a","by":"b","at":1}',
    "offer": '{"proof":"p","until":1,"lasts":1,"session":"s1"}',
}
"""JSON columns that have a shape of their own."""


def column(field: msgspec.structs.FieldInfo) -> st.SearchStrategy:
    """Any value that the type of the field allows."""
    kind = str(field.type)
    if field.name in SHAPED_COLUMNS:
        drawn = st.just(SHAPED_COLUMNS[field.name])
    elif field.name in Task.json | Task.hashed:
        drawn = documents
    elif "Meta" in kind:
        drawn = st.integers(0, 2**53)
    elif "int" in kind:
        drawn = numbers
    else:
        drawn = st.booleans() if "bool" in kind else texts
    return st.none() | drawn if "None" in kind else drawn


FREE_COLUMNS = {
    field.name: column(field)
    for field in msgspec.structs.fields(Task)
    if field.name not in {"account", "id", "version", "changed_at", "type", "state", "unique_key", "attempt"}
}
FREE_COLUMNS["token"] = st.integers(0, 2**62)  # below 0 it is a placeholder
changes = st.fixed_dictionaries({}, optional=FREE_COLUMNS)
"""Any columns, changed in any way; whole parts of a row are often left alone."""


@st.composite
def wild_pairs(draw) -> list[tuple[Task, Task]]:
    """Rows before and after any change of columns that the schema allows: final states stay."""
    pairs = []
    for number in range(draw(st.integers(1, 4))):
        key = draw(st.none() | st.just(f"key-{number}"))
        before = Task("a", f"t{number}", type=draw(types), state=draw(st.sampled_from(STATES)), unique_key=key)
        before = msgspec.structs.replace(before, **draw(changes))
        allowed = [before.state] if before.state in FINAL_STATES - {DEAD} else [*STATES]
        if before.state == DEAD:
            allowed = [DEAD, PENDING]
        moved = {"state": draw(st.sampled_from(allowed)), "attempt": before.attempt + draw(st.integers(0, 2))}
        after = msgspec.structs.replace(before, **draw(changes), **moved)
        pairs.append((without_contradictions(before), without_contradictions(after)))
    return pairs


def without_contradictions(task: Task) -> Task:
    """The task with a lease if it is claimed, within its limits, else with none: a store refuses to load others."""
    if task.state == CLAIMED:
        lease = {"proof": task.proof or "p", "expires_at": task.expires_at or START}
    else:
        lease = {"proof": None, "expires_at": None, "offer": None}
    flags = None if task.unmet_flags is None or task.depends_on is None else "10"
    dependencies = {"unmet_flags": flags, "unmet": task.unmet if flags is None else 1}
    changed = lease | dependencies | {"ready": task.ready and task.state == PENDING}
    return within_limits(msgspec.structs.replace(task, **changed))


@st.composite
def task_rows(draw) -> Task:
    """Rows of a few accounts and types, with independent times."""
    state = draw(st.sampled_from(STATES))
    return Task(
        draw(accounts),
        f"t{draw(st.integers(0, 99)):02}",
        type=draw(types),
        priority=draw(st.integers(0, 2)),
        state=state,
        ready=draw(st.booleans()),
        scheduled_at=draw(st.none() | instants),
        place=draw(instants),
        created_at=draw(instants),
        claimed_at=draw(st.none() | instants),
        expires_at=draw(st.none() | instants),
        resolved_at=draw(st.none() | instants),
        proof=draw(st.none() | st.just("proof")),
        session=draw(st.none() | st.sampled_from(["s1", "s2"])),
        tag=draw(st.none() | st.sampled_from(["red", "blue"])),
        requires=draw(required),
    )


# As core makes them: only pending tasks are ready, only claimed tasks have a deadline.
sensible_rows = task_rows().map(
    lambda task: msgspec.structs.replace(
        task,
        ready=task.ready and task.state == PENDING,
        expires_at=(task.expires_at or START) if task.state == "claimed" else None,
        proof="proof" if task.state == "claimed" else None,
        session=task.session if task.state == "claimed" else None,
    )
)


def by_key(task: Task) -> tuple[str, str, str]:
    return task.key


task_lists = st.lists(sensible_rows, min_size=3, max_size=14, unique_by=by_key)


@st.composite
def queued_rows(draw) -> Task:
    """Pending tasks: claimable, or scheduled for a time around now."""
    ready = draw(st.booleans())
    return Task(
        "a",
        f"t{draw(st.integers(0, 99)):02}",
        type=draw(st.sampled_from("xxy")),
        priority=draw(st.integers(0, 2)),
        ready=ready,
        scheduled_at=draw(st.none() | instants) if ready else draw(instants),
        place=draw(instants),
        requires=draw(required),
        concurrency_key=draw(st.sampled_from([None, "k1", "k2"])),
    )


queues = st.lists(queued_rows(), min_size=4, max_size=14, unique_by=by_key)


@st.composite
def keyed_lists(draw) -> list[Task]:
    """Tasks under few unique keys; at most one live task has each key."""
    rows, live_keys = [], set()
    for row in draw(task_lists):
        key = draw(st.none() | st.sampled_from(["k1", "k2"]))
        if row.state in LIVE_STATES and key is not None:
            key = None if (row.account, key) in live_keys else key
            live_keys.add((row.account, key))
        rows.append(msgspec.structs.replace(row, unique_key=key))
    return rows
