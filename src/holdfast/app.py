"""Puts the house together. Only this file knows which concrete store is behind the contract."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from contextlib import contextmanager

from holdfast import extras
from holdfast.billing.provider import Payments
from holdfast.core.acl import hash_token
from holdfast.core.event import Cause
from holdfast.core.names import DEFAULT_ACCOUNT
from holdfast.core.plan import DAY
from holdfast.core.principal import ALL_SCOPES, ISSUED, ROOT, ROTATED, STATIC, WORK_SCOPES, format_key
from holdfast.engine.alerts import KINDS, Alerts
from holdfast.engine.engine import Engine
from holdfast.engine.retention import Retention
from holdfast.engine.verbs.accounts import KeySetting, SyncConfiguredKeys
from holdfast.settings import Settings, sqlite_path
from holdfast.store.contract import MissingDriver, Store
from holdfast.telemetry.shared_memory import inherited
from holdfast.telemetry.traces import Traces, check_installed

KEY_BYTES = 24


def make_store(settings: Settings) -> Store:
    """The store that an address names. Drivers are loaded here: a server on a file starts without PostgreSQL's."""
    if settings.store == "memory:":
        from holdfast.store.memory.store import MemoryStore

        return MemoryStore()
    if settings.store.startswith("sqlite:///"):
        from holdfast.store.sqlite import SqliteStore

        return SqliteStore(sqlite_path(settings.store))
    if not extras.is_installed(extras.POSTGRES):
        raise MissingDriver(f"a PostgreSQL store needs its driver: {extras.install_command(extras.POSTGRES)}")
    from holdfast.store.postgres import PostgresStore

    return PostgresStore(
        settings.store, lanes=settings.lanes, pooled=settings.postgres_pooled, listen_url=settings.postgres_listen
    )


def retention_of(settings: Settings) -> Retention:
    """How long what is over is kept. Names nobody uses are forgotten when their last events are."""
    return Retention(
        tasks=settings.task_retention_days * DAY,
        events=settings.event_retention_days * DAY,
        names=settings.event_retention_days * DAY,
        dead_letters=settings.purge_dead_letters,
        plans=settings.plans,
        plan=settings.plan,
    )


def payments_of(settings: Settings) -> Payments | None:
    """Who takes money; nobody unless a merchant is named."""
    if settings.paypal_client_id is None or settings.paypal_secret is None:
        return None
    from holdfast.billing.paypal import PayPal

    return PayPal(settings.paypal_client_id, settings.paypal_secret, settings.paypal_url)


def traces_of(settings: Settings) -> Traces | None:
    """Where traces go; nowhere unless asked for. OpenTelemetry is loaded here, and only then."""
    if not settings.traces:
        return None
    check_installed()
    from holdfast.telemetry.otel import OtelTraces

    return OtelTraces(settings.otlp_endpoint)


def alerts_of(settings: Settings) -> Alerts:
    """What is worth a warning."""
    return Alerts({kind: getattr(settings, f"alert_{kind}") for kind in KINDS})


@contextmanager
def running_engine(settings: Settings, *, serving: bool = True) -> Iterator[Engine]:
    """An engine over an open store, for as long as a server runs; `serving` is for servers alone."""
    store = make_store(settings)
    store.open()
    engine = Engine(
        store,
        serving=serving,
        retention=retention_of(settings),
        alerts=alerts_of(settings),
        board=inherited(settings.workers),
    )
    engine.start()
    try:
        yield engine
    finally:
        engine.stop()
        store.close()


def has_credential(engine: Engine, settings: Settings) -> bool:
    """Whether anybody could sign in without a first key being made."""
    if settings.root_key is not None or settings.admin_key is not None or settings.static_tokens:
        return True
    return _has_issued(engine)


def _has_issued(engine: Engine) -> bool:
    known = engine.read(lambda reader: reader.principals(DEFAULT_ACCOUNT))
    return any(principal.source == ISSUED and principal.revoked_at is None for principal in known)


def settle_identities(engine: Engine, settings: Settings) -> str | None:
    """Make credentials match the settings. A server that has none yet gets a first key, returned this once."""
    known = engine.read(lambda reader: reader.principals(DEFAULT_ACCOUNT))
    wanted = [KeySetting(name, STATIC, hash_token(token), WORK_SCOPES) for name, token in settings.static_tokens]
    if settings.root_key is not None:
        wanted.append(KeySetting("root", ROOT, hash_token(settings.root_key), ALL_SCOPES))
    first_key = None
    if not wanted and not _has_issued(engine):
        first_key = format_key(secrets.token_bytes(KEY_BYTES))
        wanted.append(KeySetting("first", ISSUED, hash_token(first_key), ALL_SCOPES))
    command = SyncConfiguredKeys(
        account=DEFAULT_ACCOUNT,
        cause=Cause("settings", ""),
        wanted=tuple(wanted),
        known=tuple(principal.id for principal in known),
        revoke=(STATIC, ROTATED, ROOT),
    )
    engine.call(command)
    if first_key is not None and engine.read(lambda reader: reader.principal(hash_token(first_key))) is None:
        return None  # another server, starting at the same moment, made it first
    return first_key
