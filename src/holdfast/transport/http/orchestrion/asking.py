"""Handler of `POST /v1/tasks/{id}/ask`."""

from __future__ import annotations

import functools

from holdfast.engine.verbs.questions import AskTask
from holdfast.transport.http.bodies.acting_session import check_acting_session
from holdfast.transport.http.bodies.checks import Checks
from holdfast.transport.http.bodies.idempotency import read_task_idempotency_key
from holdfast.transport.http.bodies.parsing import read_body
from holdfast.transport.http.context import HandlerContext
from holdfast.transport.http.orchestrion.question_bodies import AskBody, ask_fields
from holdfast.transport.http.orchestrion.task_verbs import render_task, rules_of
from holdfast.transport.http.request import Request, Response, answer


async def ask_task(ctx: HandlerContext, request: Request) -> Response:
    """Ask a person about a task: it waits for the answer, and the caller holds it no longer."""
    await ctx.authenticate(request)
    body, warnings, raw = await read_body(request, AskBody)
    rules = await rules_of(ctx, request)
    render = functools.partial(render_task, warnings, verb="ask")
    checks = Checks()
    fields = ask_fields(body, checks) | {"session": check_acting_session(checks, request, body)}
    checks.raise_errors()
    command = AskTask(
        **fields,
        account=request.by.account,
        cause=request.cause(),
        task_id=request.parameter,
        needs_lease_id=rules.needs_lease_id,
        once=read_task_idempotency_key(request, raw, render, per_caller=True),
    )
    return answer(await ctx.run_idempotent(command), render)
