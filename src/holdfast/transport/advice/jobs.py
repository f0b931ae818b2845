"""`agent_contract` of jobs."""

from __future__ import annotations

from holdfast.transport.advice.contract import Contract, action, continue_work, contract, work_over


def claimed(job_id: str, expires_in: int, every: float) -> Contract:
    """The caller owns the job."""
    return contract(
        action("heartbeat_job", job_id, best=True, why="Renew the lease while you work, at the recommended interval."),
        action("release_job", job_id, why="When you are done or give up; leave a note for the next owner."),
        lease_valid=True,
        lease_expires_in_seconds=expires_in,
        recommended_heartbeat_interval_seconds=every,
    )


def offered(job_id: str, expires_in: int) -> Contract:
    """The caller has offered its job."""
    return contract(
        action(
            "stop_work",
            best=True,
            why="Give `offer` to the worker that takes over, which sends it with claim_job; then you may stop.",
        ),
        action("get_job_owner", job_id, why="See whether it was taken over."),
        action("withdraw_job_offer", job_id, why="If you want to keep the job."),
        action("release_job", job_id, why="If nobody needs to take it over."),
        lease_valid=True,
        lease_expires_in_seconds=expires_in,
    )


def held(job_id: str, wait: int) -> Contract:
    """Another worker owns the job."""
    return contract(
        action(
            "retry_after_wait",
            job_id,
            operation="claim_job",
            best=True,
            wait=wait,
            why="Take other work and claim again later, or send `wait_seconds` to wait in the queue.",
        ),
        action("get_job_owner", job_id),
        retryable=True,
    )


def done(job_id: str) -> Contract:
    """The work is done already."""
    return contract(
        action("stop_work", best=True, why="This job is done: use its `result` and take other work."),
        action("get_job_owner", job_id),
        action("claim_job", job_id, why="Only if it must be done once more: send `again: true`."),
    )


def free(job_id: str) -> Contract:
    """No worker owns the job."""
    return contract(action("claim_job", job_id, best=True))


def lost(job_id: str) -> Contract:
    """The caller has lost its lease."""
    return contract(
        action(
            "stop_work",
            best=True,
            why="You do not hold the job, and another worker may. Undo or abandon unfinished work.",
        ),
        action("get_job_owner", job_id),
        action("claim_job", job_id, why="Only if the work is still needed."),
    )


def several_renewed(*, all_held: bool) -> Contract:
    """The caller renewed several leases."""
    renew = action("heartbeat_leases", best=all_held, why="Renew them again within `heartbeat_every_seconds` of each.")
    if all_held:
        return contract(renew)
    stop = action("stop_work", best=True, why="Stop work on each lease whose result is an error; the others are held.")
    return contract(stop, renew)


def released(job_id: str) -> Contract:
    """The caller released the job, so it is not advised to claim it again."""
    return work_over(
        "You are done with this job.",
        action("list_claimed_jobs", why="See which jobs are claimed."),
        action("claim_job", job_id, why="Only if there is more to do on it."),
    )


def already_released(job_id: str) -> Contract:
    """The caller used a lease that it had released itself."""
    return work_over("You released it already; there is nothing to do.", action("get_job_owner", job_id))


def not_held(job_id: str) -> Contract:
    """An administrator wanted to release a job that nobody holds."""
    return work_over("It is free; there is nothing to release.", action("get_job_owner", job_id))


def listed(first_id: str | None, next_page: str | None = None) -> Contract:
    """A page of jobs; `next_page` is the query of the next one."""
    if next_page is not None:
        return contract(action("list_claimed_jobs", query=next_page, best=True, why="There are more jobs."))
    if first_id is None:
        return continue_work("No such job is held. Claim the one that you are going to work on.", action("claim_job"))
    return contract(action("get_job_owner", first_id, best=True))
