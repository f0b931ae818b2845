"""`agent_contract`: what an agent should do next, on every answer. Pure functions of what happened.

Action codes are a promise. The first recommended action is the one to take.
"""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

from holdfast.core.row import SECOND, Instant

Contract = dict[str, Any]
Action = dict[str, Any]

VERSION = "1"


def contract(*actions: Action, retryable: bool = False, **more: Any) -> Contract:
    """Wrap actions, best first."""
    return {"version": VERSION, "retryable": retryable, "next_actions": list(actions), **more}


def action(code: str, call: str = "", *, best: bool = False, wait: int | None = None, why: str = "") -> Action:
    """One thing to do; `call` is "METHOD /path" where it is a request."""
    step: Action = {"action": code, "available": True, "recommended": best}
    if why:
        step["description"] = why
    if call:
        step["method"], _, step["endpoint"] = call.partition(" ")
    if wait is not None:
        step["retry_after_seconds"] = wait
    return step


def seconds_left(until: Instant | None, now: Instant) -> int:
    """Whole seconds until then, never below zero."""
    return max((until or now) - now, 0) // SECOND


def seconds_to_wait(until: Instant | None, now: Instant) -> int:
    """Whole seconds after which it is past then: at least one."""
    return max(-(-((until or now) - now) // SECOND), 1)


def welcome() -> Contract:
    """The caller knows only the address."""
    return contract(
        action("register", "POST /v1/keys/register", best=True, why="Get an account and its first key."),
        action("agent_json", "GET /.well-known/agent.json", why="Or read first what there is."),
    )


def farewell() -> Contract:
    """The caller's account is gone."""
    return contract(action("register", "POST /v1/keys/register", best=True, why="Begin again with a new account."))


# -- jobs --------------------------------------------------------------------------------------------------------


def job_claimed(job_id: str, expires_in: int, every: float) -> Contract:
    """The caller owns the job."""
    path = f"POST /v1/jobs/{job_id}"
    return contract(
        action("heartbeat_job", f"{path}/heartbeat", best=True, why="Renew while you work, at the advised pace."),
        action("release_job", f"{path}/release", why="When done or giving up; leave a note for the next owner."),
        lease_valid=True,
        lease_expires_in_seconds=expires_in,
        recommended_heartbeat_interval_seconds=every,
    )


def job_held(job_id: str, wait: int) -> Contract:
    """Somebody else owns it."""
    return contract(
        action(
            "retry_after_wait",
            f"POST /v1/jobs/{job_id}/claim",
            best=True,
            wait=wait,
            why="Take other work, or claim again later; `wait_seconds` stands in line for you.",
        ),
        action("get_job_owner", f"GET /v1/jobs/{job_id}"),
        retryable=True,
    )


def job_free(job_id: str) -> Contract:
    """Nobody owns it."""
    return contract(action("claim_job", f"POST /v1/jobs/{job_id}/claim", best=True))


def job_lost(job_id: str) -> Contract:
    """The caller's lease is over."""
    return contract(
        action(
            "stop_work",
            best=True,
            why="Your lease is over: another may be at work. Undo or abandon what is unfinished.",
        ),
        action("get_job_owner", f"GET /v1/jobs/{job_id}"),
        action("claim_job", f"POST /v1/jobs/{job_id}/claim"),
    )


def job_released(job_id: str) -> Contract:
    """The job is somebody else's to claim: the caller is done with it."""
    return contract(
        action(
            "list_claimed_jobs", "GET /v1/jobs", best=True, why="You are done with this job; see what else is going on."
        ),
        action("claim_job", f"POST /v1/jobs/{job_id}/claim", why="Only if there is more to do."),
    )


def job_released_before(job_id: str) -> Contract:
    """The caller asks again about a lease that it gave back itself."""
    return contract(
        action("get_job_owner", f"GET /v1/jobs/{job_id}", best=True, why="You released it already: nothing to do.")
    )


def job_list(first_id: str | None, next_page: str | None = None) -> Contract:
    """A page of jobs."""
    if next_page is not None:
        return contract(action("list_claimed_jobs", f"GET /v1/jobs?{next_page}", best=True, why="There are more."))
    if first_id is None:
        return contract(
            action("claim_job", "POST /v1/jobs/{job_id}/claim", best=True, why="No job is held: claim one.")
        )
    return contract(action("get_job_owner", f"GET /v1/jobs/{first_id}", best=True))


# -- locks -------------------------------------------------------------------------------------------------------


def lock_path(name: str) -> str:
    """A lock's path: its name is one segment."""
    return f"/locks/{quote(name, safe='')}"


def lock_acquired(name: str) -> Contract:
    """The caller has the lock."""
    path = lock_path(name)
    return contract(
        action("renew_lock", f"POST {path}/renew", best=True), action("release_lock", f"POST {path}/release")
    )


def lock_held(name: str, wait: int) -> Contract:
    """Somebody else has it, or it rests."""
    path = lock_path(name)
    return contract(
        action("retry_after_wait", f"POST {path}/acquire", best=True, wait=wait),
        action("get_lock_status", f"GET {path}"),
        retryable=True,
    )


def lock_free(name: str) -> Contract:
    """Nobody has it."""
    return contract(action("acquire_lock", f"POST {lock_path(name)}/acquire", best=True))


def lock_list() -> Contract:
    """A list of locks."""
    return contract(action("get_lock_status", "GET /locks/{name}", best=True))


def operated() -> Contract:
    """Numbers about the server: who holds what is another page."""
    return contract(action("admin_status", "GET /admin/status", best=True))


def token_given() -> Contract:
    """A token to take locks with."""
    return contract(action("acquire_lock", "POST /locks/{name}/acquire", best=True))


# -- sessions ----------------------------------------------------------------------------------------------------


def session_open(session_id: str) -> Contract:
    """The session lives."""
    return contract(
        action("keepalive_session", f"POST /sessions/{session_id}/keepalive", best=True),
        action("acquire_lock", "POST /locks/{name}/acquire"),
        action(
            "claim_job", "POST /v1/jobs/{job_id}/claim", why="With this session_id: the job goes when the session does."
        ),
    )


def session_over() -> Contract:
    """The session has run out."""
    return contract(action("open_session", "POST /sessions", best=True))


def life_live(session_id: str) -> Contract:
    """A named session lives."""
    path = f"/v1/sessions/{session_id}"
    return contract(
        action("heartbeat_session", f"POST {path}/heartbeat", best=True, why="Renews it and all that it holds."),
        action("write_context", f"POST {path}/context", why="What your next life must know."),
        action("claim_task", "POST /v1/tasks/claim", why="With this session_id."),
        action("claim_job", "POST /v1/jobs/{job_id}/claim", why="With this session_id."),
    )


def life_over(session_id: str) -> Contract:
    """A named session has ended; its context stays for its next life."""
    return contract(
        action(
            "resume_session", "POST /v1/sessions", best=True, why="With the same name, and its secret if you have it."
        ),
        action("read_session", f"GET /v1/sessions/{session_id}"),
    )


# -- elections ---------------------------------------------------------------------------------------------------


def election_leading(election_id: str) -> Contract:
    """The caller leads."""
    path = f"POST /elections/{election_id}"
    return contract(action("renew_leadership", f"{path}/renew", best=True), action("resign", f"{path}/resign"))


def election_led(election_id: str, wait: int) -> Contract:
    """Somebody leads."""
    return contract(
        action("retry_after_wait", f"POST /elections/{election_id}/campaign", best=True, wait=wait),
        action("get_election_status", f"GET /elections/{election_id}"),
        retryable=True,
    )


def election_resigned(election_id: str) -> Contract:
    """The caller stopped leading."""
    return contract(
        action("get_election_status", f"GET /elections/{election_id}", best=True),
        action("campaign", f"POST /elections/{election_id}/campaign", why="Only to lead again."),
    )


def election_vacant(election_id: str) -> Contract:
    """Nobody leads."""
    return contract(action("campaign", f"POST /elections/{election_id}/campaign", best=True))


# -- refusals ----------------------------------------------------------------------------------------------------


def wait_and_retry(seconds: int) -> Contract:
    """The same request may succeed later."""
    return contract(action("retry_after_wait", best=True, wait=seconds), retryable=True)


def look_first(call: str, code: str) -> Contract:
    """It may have happened: look before doing anything again."""
    return contract(action(code, call, best=True), retryable=False)


def authenticate(*, retryable: bool) -> Contract:
    """A credential is missing or wrong."""
    return contract(
        action("authenticate", best=True, why="Send `Authorization: Bearer <key>` with a key this server issued."),
        retryable=retryable,
    )


def fix_request(why: str = "") -> Contract:
    """The request is wrong as it stands."""
    return contract(action("fix_request", best=True, why=why))


def lock_limit() -> Contract:
    """The caller holds as many locks as it may."""
    return contract(action("release_lock", "POST /locks/{name}/release", best=True))


def stop_work(call: str, code: str) -> Contract:
    """What the caller held is over."""
    return contract(action("stop_work", best=True), action(code, call))
