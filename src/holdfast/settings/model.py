"""The settings of one process: frozen, and checked before anything starts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import platformdirs

from holdfast.core.plan import PLANS, SELF_HOSTED, Catalogue
from holdfast.settings.fields import BY_NAME, OPEN


def _default(name: str) -> Any:
    return BY_NAME[name].default


class Settings(msgspec.Struct, frozen=True):
    """The values in use. `fields.py` describes each one."""

    host: str = _default("host")
    port: int = _default("port")
    public_url: str | None = None
    trusted_proxies: tuple[str, ...] = ()
    allowed_origins: tuple[str, ...] = ()
    tls_cert: str | None = None
    tls_key: str | None = None
    allow_insecure_http: bool = _default("allow_insecure_http")
    store: str = _default("store")
    workers: int = _default("workers")
    lanes: int = _default("lanes")
    root_key: str | None = None
    admin_key: str | None = None
    static_tokens: tuple[tuple[str, str], ...] = ()
    """(name, token)"""
    public_elections: bool = _default("public_elections")
    max_public_elections: int = _default("max_public_elections")
    public_election_requests_per_minute: int = _default("public_election_requests_per_minute")
    public_election_watch_streams_global: int = _default("public_election_watch_streams_global")
    public_election_watch_streams_per_client: int = _default("public_election_watch_streams_per_client")
    public_election_watch_max_seconds: int = _default("public_election_watch_max_seconds")
    allow_short_tokens: bool = _default("allow_short_tokens")
    max_streams: int = _default("max_streams")
    max_locks_per_user: int = _default("max_locks_per_user")
    retry_base_seconds: int = _default("retry_base_seconds")
    retry_max_seconds: int = _default("retry_max_seconds")
    task_retention_days: int = _default("task_retention_days")
    event_retention_days: int = _default("event_retention_days")
    traces: bool = False
    """Whether traces are sent: set when `otlp_endpoint` or one of OpenTelemetry's variables is."""
    otlp_endpoint: str | None = None
    log_format: str | None = None
    log_level: str = _default("log_level")
    access_log: str = _default("access_log")
    alert_conflicts: int = _default("alert_conflicts")
    alert_lapses: int = _default("alert_lapses")
    alert_dead_letters: int = _default("alert_dead_letters")
    alert_recovery_failures: int = _default("alert_recovery_failures")
    purge_dead_letters: bool = _default("purge_dead_letters")
    paypal_client_id: str | None = None
    paypal_secret: str | None = None
    paypal_url: str = _default("paypal_url")
    postgres_pooled: bool = _default("postgres_pooled")
    postgres_durable_storage: bool = _default("postgres_durable_storage")
    postgres_listen: str | None = None
    postgres_require_standby: bool = _default("postgres_require_standby")
    registration: str | None = None
    machine_key: bool = _default("machine_key")
    local_registration: bool = _default("local_registration")
    webhook_allow_private_networks: bool = _default("webhook_allow_private_networks")
    webhook_retries: tuple[float, ...] = _default("webhook_retries")
    webhook_timeout: int = _default("webhook_timeout")
    ca_bundle: str | None = None
    mcp_session_seconds: int = _default("mcp_session_seconds")
    mcp_idle_minutes: int = _default("mcp_idle_minutes")
    plan: str = _default("plan")
    plans: Catalogue = msgspec.field(default_factory=lambda: PLANS)

    def __repr__(self) -> str:
        """Show only the address, because some values are secret."""
        return f"<settings of {self.url}>"

    @property
    def url(self) -> str:
        """The address that the server listens on."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{'http' if self.tls_cert is None else 'https'}://{host}:{self.port}"

    @property
    def has_fronts(self) -> bool:
        """Whether front processes answer requests for one engine process: PostgreSQL's workers are whole servers."""
        return self.workers > 1 and self.store.startswith("sqlite:")

    @property
    def is_registration_open(self) -> bool:
        """Whether anyone may create an account: if the setting says so, else on servers that sell plans."""
        return self.registration == OPEN or (self.registration is None and self.plan != SELF_HOSTED)

    @property
    def home(self) -> str:
        """The address that clients use, for documents and links."""
        return self.public_url or self.url


def store_address(path: str) -> str:
    """The address of a store that is given as an address or as the path of an SQLite file.

    SQLite's own way to name a database in memory means ours, not a file of that name.
    """
    address = path if path == "memory:" or "://" in path else f"sqlite:///{path}"
    return "memory:" if address == "sqlite:///:memory:" else address


def default_store() -> str:
    """The address of an SQLite file in the user's state folder."""
    return f"sqlite:///{platformdirs.user_state_path('holdfast') / 'holdfast.db'}"


def sqlite_path(store: str) -> Path:
    """The file that a sqlite:/// address names."""
    return Path(store.removeprefix("sqlite:///")).expanduser()


def describe_store(store: str) -> str:
    """A store for people: the file, or the database without its password."""
    if store == "memory:":
        return "in memory: lost when this process ends"
    if store.startswith("sqlite:///"):
        return str(sqlite_path(store).resolve())
    address = store.rpartition("@")[2]
    return f"PostgreSQL at {address.partition('?')[0] or 'the local socket'}"
