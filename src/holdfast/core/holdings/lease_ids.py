"""Lease ids of a session, which can be computed again with the session's secret.

Rows have only the hashes of lease ids, so that a stolen database grants nothing. The lease id of a session is derived
from its secret, and the lease ids of what was claimed with it are derived from that one. The store has none of them:
a caller that sends the secret proves to be the session, and gets its lease ids back.
"""

from __future__ import annotations

import hmac

from holdfast.core.event import subject_of
from holdfast.core.lease import Lease, derive_lease_id, proof_of
from holdfast.core.reservation.row import Reservation
from holdfast.core.session import Session
from holdfast.core.task import Task


def is_secret_of(session: Session, secret: str) -> bool:
    """Whether this is the session's secret."""
    return session.secret is not None and hmac.compare_digest(session.secret, proof_of(secret))


def session_lease_id(secret: str, session: Session) -> str:
    """The lease id of the session's present generation.

    The number of the generation alone would not do. A store that was restored from a backup counts some generations
    again, and the process of one that was lost with the store must stay fenced off.
    """
    return derive_lease_id(secret.encode(), session.account, subject_of(session), session.generation, session.opened_at)


Held = Lease | Task | Reservation


def held_lease_id(lease_id: str, row: Held) -> str:
    """The lease id of what was claimed or reissued under the lease id of its session.

    It is new for every grant: each claim of a job has its own holder id, each claim of a task its own number, and a
    reservation its own time.
    """
    grant = row.attempt if isinstance(row, Task) else row.holder if isinstance(row, Lease) else row.claimed_at
    return derive_lease_id(lease_id.encode(), row.account, subject_of(row), grant)


def recover_session_lease_id(secret: str, session: Session) -> str | None:
    """The session's lease id; None if an older version of the server made it, or if the session was never named."""
    return _current(session_lease_id(secret, session), session)


def recover_lease_id(lease_id: str, row: Held) -> str | None:
    """The lease id of what a session with this lease id holds; None if it was claimed without that lease id."""
    return _current(held_lease_id(lease_id, row), row)


def _current(lease_id: str, row: Held | Session) -> str | None:
    return lease_id if row.proof == proof_of(lease_id) else None
