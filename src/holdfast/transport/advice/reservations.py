"""`agent_contract` of reservations."""

from __future__ import annotations

from holdfast.transport.advice.contract import Contract, action, continue_work, contract, work_over


def reserved(reservation_id: str, expires_in: int, every: float) -> Contract:
    """The caller holds the files."""
    return contract(
        action(
            "heartbeat_reservation",
            reservation_id,
            best=True,
            why="Renew the reservation while you work, at the recommended interval.",
        ),
        action("release_files", reservation_id, why="When you are done, release the files, all or some."),
        action("extend_reservation", reservation_id, why="If you need more files."),
        lease_valid=True,
        lease_expires_in_seconds=expires_in,
        recommended_heartbeat_interval_seconds=every,
    )


def offered(reservation_id: str, expires_in: int) -> Contract:
    """The caller has offered its reservation."""
    return contract(
        action(
            "stop_work",
            best=True,
            why="Give `offer` and the id to the agent that takes over, which sends them with claim_reservation.",
        ),
        action("withdraw_reservation_offer", reservation_id, why="If you want to keep the files."),
        lease_valid=True,
        lease_expires_in_seconds=expires_in,
    )


def held(wait: int) -> Contract:
    """Others hold files that the caller asked for."""
    return contract(
        action(
            "retry_after_wait",
            operation="reserve_files",
            best=True,
            wait=wait,
            why="Leave these files alone. Do other work and ask again later, or send `wait_seconds` to wait.",
        ),
        action("list_reservations", why="See who holds what."),
        retryable=True,
    )


def not_extended(reservation_id: str, wait: int) -> Contract:
    """Others hold files that the caller wanted to add; what it has, it keeps."""
    return contract(
        action(
            "retry_after_wait",
            reservation_id,
            operation="extend_reservation",
            best=True,
            wait=wait,
            why="You keep what you have reserved. Leave the other files alone and ask again later.",
        ),
        action("heartbeat_reservation", reservation_id, why="Renew what you have meanwhile."),
        retryable=True,
    )


def reduced(reservation_id: str) -> Contract:
    """The caller released some files, or withdrew its offer, and holds the others."""
    return contract(
        action("heartbeat_reservation", reservation_id, best=True, why="Renew the reservation of the files you hold."),
        action("release_files", reservation_id, why="When you are done with them."),
    )


def released() -> Contract:
    """The caller released everything."""
    return work_over("Your files are free now.", action("list_reservations", why="See what others hold."))


def not_held(reservation_id: str) -> Contract:
    """An administrator wanted to release a reservation that holds nothing."""
    return work_over("It holds no files; there is nothing to release.", action("read_reservation", reservation_id))


def lost(reservation_id: str | None) -> Contract:
    """The caller has lost its reservation."""
    return contract(
        action(
            "stop_work",
            best=True,
            why="Your reservation has ended and others may change the files. Do not write them any more.",
        ),
        action("read_reservation", reservation_id, why="Read how it ended."),
        action("reserve_files", why="Reserve the files again if you still need them."),
    )


def listed(first_id: str | None, next_page: str | None = None) -> Contract:
    """A page of reservations; `next_page` is the query of the next one."""
    if next_page is not None:
        return contract(action("list_reservations", query=next_page, best=True, why="There are more reservations."))
    if first_id is None:
        return continue_work("Nobody has reserved these files.", action("reserve_files"))
    return continue_work("Leave these files to their owners.", action("read_reservation", first_id))


def checked(*, all_allowed: bool) -> Contract:
    """Which files the caller may change."""
    if all_allowed:
        reserve = action("reserve_files", why="Reserve files before you change them.")
        return continue_work("You may change these files.", reserve)
    return work_over(
        "Do not change the files that are not allowed: others have reserved them.",
        action("reserve_files", why="Wait for them with `wait_seconds`."),
    )


def looked_up(*, is_open: bool) -> Contract:
    """One reservation was read."""
    if is_open:
        return continue_work("It is open.", action("list_reservations", why="See what else is reserved."))
    return continue_work("It has ended.", action("reserve_files", why="If you need these files."))
