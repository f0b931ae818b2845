"""Assembly: builds the engine from the settings.

Only this module and `backup` import concrete stores, and only this one the payment provider.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from contextlib import contextmanager

from holdfast import extras
from holdfast.billing.provider import PaymentProvider
from holdfast.core.acl import hash_token
from holdfast.core.event import Cause
from holdfast.core.names import DEFAULT_ACCOUNT
from holdfast.core.plan import DAY
from holdfast.core.principal import ALL_SCOPES, ISSUED, ROOT, ROTATED, STATIC, WORK_SCOPES, format_key
from holdfast.engine.alerts import Alerts
from holdfast.engine.engine import Engine
from holdfast.engine.retention import Retention
from holdfast.engine.verbs.accounts import KeySetting, SyncConfiguredKeys
from holdfast.settings import Settings, sqlite_path
from holdfast.store.contract import Clock, MissingDriver, Store
from holdfast.telemetry.metric_names import ALERT_KINDS
from holdfast.telemetry.shared_memory import open_registry
from holdfast.telemetry.traces import Traces, check_installed

KEY_BYTES = 24


def make_store(settings: Settings, clock: Clock | None = None) -> Store:
    """The store of the configured URL. Its driver is imported here, so a SQLite server does not load PostgreSQL's.

    A `clock` is for a store in memory; the others have their own.
    """
    if settings.store == "memory:":
        from holdfast.store.memory.store import MemoryStore

        return MemoryStore(clock)
    if settings.store.startswith("sqlite:///"):
        from holdfast.store.sqlite import SqliteStore

        return SqliteStore(sqlite_path(settings.store))
    if not extras.is_installed(extras.POSTGRES):
        raise MissingDriver(f"a PostgreSQL store needs its driver: {extras.install_command(extras.POSTGRES)}")
    from holdfast.store.postgres import PostgresStore

    return PostgresStore(
        settings.store,
        lanes=settings.lanes,
        pooled=settings.postgres_pooled,
        listen_url=settings.postgres_listen,
        require_standby=settings.postgres_require_standby,
        durable_storage=settings.postgres_durable_storage,
    )


def make_retention(settings: Settings) -> Retention:
    """How long finished tasks, events and unused names are kept; a name is removed with its last events."""
    return Retention(
        tasks=settings.task_retention_days * DAY,
        events=settings.event_retention_days * DAY,
        names=settings.event_retention_days * DAY,
        dead_letters=settings.purge_dead_letters,
        plans=settings.plans,
        plan=settings.plan,
    )


def make_payment_provider(settings: Settings) -> PaymentProvider | None:
    """The payment provider, if one is configured."""
    if settings.paypal_client_id is None or settings.paypal_secret is None:
        return None
    from holdfast.billing.paypal import PayPal

    return PayPal(settings.paypal_client_id, settings.paypal_secret, settings.paypal_url)


def make_traces(settings: Settings) -> Traces | None:
    """OpenTelemetry traces, if they are configured; OpenTelemetry is imported only then."""
    if not settings.traces:
        return None
    check_installed()
    from holdfast.telemetry.otel import OtelTraces

    return OtelTraces(settings.otlp_endpoint)


def make_alerts(settings: Settings) -> Alerts:
    """The hourly alert thresholds."""
    return Alerts({kind: getattr(settings, f"alert_{kind}") for kind in ALERT_KINDS})


@contextmanager
def running_engine(settings: Settings, *, serving: bool = True, clock: Clock | None = None) -> Iterator[Engine]:
    """A started engine over an open store; `serving` is true for servers and false for embedded use."""
    store = make_store(settings, clock)
    store.open()
    engine = Engine(
        store,
        serving=serving,
        retention=make_retention(settings),
        alerts=make_alerts(settings),
        registry=open_registry(settings.workers),
    )
    engine.start()
    try:
        yield engine
    finally:
        engine.stop()
        store.close()


def has_credential(engine: Engine, settings: Settings) -> bool:
    """Whether a credential exists, so that no first key has to be created."""
    if settings.root_key is not None or settings.admin_key is not None or settings.static_tokens:
        return True
    return _has_issued(engine)


def _has_issued(engine: Engine) -> bool:
    existing = engine.read(lambda reader: reader.principals(DEFAULT_ACCOUNT))
    return any(principal.source == ISSUED and principal.revoked_at is None for principal in existing)


def sync_credentials(engine: Engine, settings: Settings) -> str | None:
    """Make stored credentials match the settings. A server without any gets a first key, which is returned once."""
    existing = engine.read(lambda reader: reader.principals(DEFAULT_ACCOUNT))
    configured = [KeySetting(name, STATIC, hash_token(token), WORK_SCOPES) for name, token in settings.static_tokens]
    if settings.root_key is not None:
        configured.append(KeySetting("root", ROOT, hash_token(settings.root_key), ALL_SCOPES))
    first_key = None
    if not configured and not _has_issued(engine):
        first_key = format_key(secrets.token_bytes(KEY_BYTES))
        configured.append(KeySetting("first", ISSUED, hash_token(first_key), ALL_SCOPES))
    command = SyncConfiguredKeys(
        account=DEFAULT_ACCOUNT,
        cause=Cause("settings", ""),
        configured=tuple(configured),
        existing=tuple(principal.id for principal in existing),
        revoke=(STATIC, ROTATED, ROOT),
    )
    engine.call(command)
    if first_key is not None and engine.read(lambda reader: reader.principal(hash_token(first_key))) is None:
        return None  # another server that started at the same moment has created one first
    return first_key
