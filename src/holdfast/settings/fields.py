"""Every setting as data: variable, flag, kind, bounds, unit, default and description.

`reader.py` reads values by this table and `page.py` writes docs/reference/settings.md from it.
"""

from __future__ import annotations

from typing import Any

from holdfast.core.plan import SELF_HOSTED
from holdfast.core.webhooks.delivery import SCHEDULE
from holdfast.operations.bounds import CLAIMED_TASK_LEASE, SESSION_TTL
from holdfast.settings.field import BOOLEAN, CHOICE, CONFIDENTIAL, FILE, LIST, NUMBER, TEXT, URL, Field
from holdfast.telemetry.logs import FORMATS, LEVELS

DEFAULT_PORT = 7700
PAYPAL_URL = "https://api-m.paypal.com"
LARGEST = 10**9
LEAST_STREAMS, STREAM_BYTES = 2_000, 64 * 1024
"""Event streams that any server has, and the memory that is set aside for each further one."""
OPEN, CLOSED = "open", "closed"
"""Values of the setting `registration`."""


def _number(
    name: str, default: int, bounds: tuple[int, int], description: str, *, unit: str = "", flag: bool = False
) -> Field:
    least, most = bounds
    return Field(
        name=name,
        kind=NUMBER,
        description=description,
        default=default,
        least=least,
        most=most,
        unit=unit,
        has_flag=flag,
    )


def _boolean(name: str, description: str, *, default: bool, flag: bool = False) -> Field:
    return Field(name=name, kind=BOOLEAN, description=description, default=default, has_flag=flag)


def _choice(name: str, default: str | None, choices: tuple[str, ...], description: str) -> Field:
    return Field(name=name, kind=CHOICE, description=description, default=default, choices=choices)


def _value(name: str, kind: str, description: str, **more: Any) -> Field:
    return Field(name=name, kind=kind, description=description, **more)


GROUPS: dict[str, tuple[Field, ...]] = {
    "Address": (
        _value("host", TEXT, "Address to listen on.", default="127.0.0.1", has_flag=True),
        _number("port", DEFAULT_PORT, (0, 65535), "Port to listen on; 0 picks a free one.", flag=True),
        _value("bind_addr", TEXT, "Host and port in one value, as `host:port`.", alias_of="host, port"),
        _value(
            "public_url",
            URL,
            "`https://host[/path]` where clients reach the server, if that is not where it listens.",
            has_flag=True,
            default_text="where it listens",
        ),
        _value(
            "trusted_proxies",
            LIST,
            "Addresses and CIDR blocks of proxies whose `X-Forwarded-For` and `X-Forwarded-Proto` are used.",
            default=(),
            has_flag=True,
        ),
        _value(
            "tls_cert", FILE, "PEM file with the certificate; with it and the key the server uses https.", has_flag=True
        ),
        _value("tls_key", FILE, "PEM file with the private key.", has_flag=True),
        _boolean("allow_insecure_http", "Accept keys over plain HTTP from other machines.", default=False, flag=True),
        _value(
            "allowed_origins",
            LIST,
            "Origins of web pages on other servers that may call this one, as `https://host[:port]`.",
            default=(),
        ),
    ),
    "Store": (
        _value(
            "store",
            URL,
            "`sqlite:///relative.db`, `sqlite:////absolute.db`, `postgresql://…` (needs"
            " `holdfast[postgres]`) or `memory:`.",
            default="",
            default_text="an SQLite file in your XDG state folder",
            has_flag=True,
        ),
        _value(
            "database_url", TEXT, "A path of an SQLite file, or an address; OctoStore's name for it.", alias_of="store"
        ),
        Field(
            name="workers",
            kind=NUMBER,
            description="Processes that answer requests; on SQLite one of them runs the engine for all.",
            default=1,
            default_text="1; on SQLite 3 with 4 processor cores or more",
            least=1,
            most=64,
            has_flag=True,
        ),
        _number("lanes", 2, (1, 64), "Connections of one process that write, on PostgreSQL."),
        _boolean("postgres_pooled", "The PostgreSQL address is a pooler in transaction mode.", default=False),
        _boolean(
            "postgres_durable_storage",
            "The storage of a hosted PostgreSQL keeps every commit itself: accept `fsync` and `full_page_writes` off.",
            default=False,
        ),
        _value("postgres_listen", URL, "A direct PostgreSQL address for `LISTEN`, when `store` is a pooler."),
        _boolean(
            "postgres_require_standby",
            "Acknowledge writes only where PostgreSQL waits for a synchronous standby: set it if your PostgreSQL"
            " [fails over](../guides/failover.md).",
            default=False,
        ),
    ),
    "Keys": (
        _value(
            "root_key",
            CONFIDENTIAL,
            "A key with every scope, valid while it is set.",
            default_text="made at the first start, shown once or written to a private file, stored as a hash",
        ),
        _value("admin_key", CONFIDENTIAL, "OctoStore's admin key."),
        _value("static_tokens", LIST, "Named keys: `alice:token,bob:token`.", default=()),
        _boolean(
            "allow_short_tokens",
            "Accept static tokens and an admin key of fewer than 24 characters, with a warning: they can be guessed.",
            default=False,
        ),
        _value(
            "static_tokens_file",
            FILE,
            "The same, one per line, in a file that only its owner can read.",
            alias_of="static_tokens",
        ),
        _value(
            "registration",
            CHOICE,
            "Whether `POST /v1/keys/register` creates accounts for anyone. An account sees nothing of the others.",
            choices=(OPEN, CLOSED),
            default_text="`closed`; `open` with a `plan` other than `self-hosted`",
        ),
        _boolean(
            "machine_key",
            "On a loopback address, write a key with the scopes `jobs tasks read` to the user's configuration, where"
            " the command line, `holdfast mcp` and the Python client find it.",
            default=True,
        ),
        _boolean(
            "local_registration", "OctoStore's sign-up: any program on this machine may get a token.", default=False
        ),
    ),
    "Public elections": (
        _boolean("public_elections", "Serve elections without a key.", default=True),
        _number("max_public_elections", 10_000, (1, LARGEST), "Elections that may exist at once."),
        _number(
            "public_election_requests_per_minute",
            600,
            (1, LARGEST),
            "Requests from one address.",
            unit="requests a minute",
        ),
        _number("public_election_watch_streams_global", 1024, (1, LARGEST), "Open watches in total."),
        _number("public_election_watch_streams_per_client", 8, (1, LARGEST), "Open watches from one address."),
        _number("public_election_watch_max_seconds", 900, (1, LARGEST), "How long one watch lasts.", unit="seconds"),
    ),
    "Limits and retention": (
        _number(
            "retry_base_seconds", 5, (0, 86_400), "Delay after a task's first failure; it doubles.", unit="seconds"
        ),
        _number("retry_max_seconds", 300, (0, 86_400), "The longest such delay.", unit="seconds"),
        Field(
            name="max_streams",
            kind=NUMBER,
            description="Event streams of one process; more are answered 503. One account has half of them.",
            default=LEAST_STREAMS,
            default_text=f"as many as fit into a quarter of the memory, {STREAM_BYTES // 1024} KiB each;"
            f" at least {LEAST_STREAMS:,}",
            least=1,
            most=10**6,
        ),
        _number("max_locks_per_user", 100, (1, LARGEST), "Locks that one user may hold."),
        _number(
            "task_retention_days", 30, (0, 36_500), "How long finished tasks are kept; 0 means for ever.", unit="days"
        ),
        _number("event_retention_days", 90, (0, 36_500), "How long events are kept; 0 means for ever.", unit="days"),
        _boolean("purge_dead_letters", "Remove dead letters like other finished tasks.", default=True),
    ),
    "Logs, traces and alerts": (
        _choice("log_format", None, FORMATS, "Text is for terminals, JSON for programs."),
        _choice("log_level", "info", tuple(LEVELS), "Lowest level that is logged."),
        _choice(
            "access_log",
            "errors",
            ("all", "errors", "off"),
            "Which requests are logged; `errors` are answers of 5xx and slow ones.",
        ),
        _value(
            "otlp_endpoint",
            URL,
            "Where traces are sent (needs `holdfast[otel]`); `OTEL_EXPORTER_OTLP_ENDPOINT` works too.",
            default_text="no traces",
        ),
        _number(
            "alert_conflicts",
            0,
            (0, LARGEST),
            "Warn above this many claims and writes refused because another holder has the lease; 0 means never.",
            unit="an hour",
        ),
        _number(
            "alert_lapses",
            0,
            (0, LARGEST),
            "Warn above this many holders that did not renew in time; 0 means never.",
            unit="an hour",
        ),
        _number(
            "alert_dead_letters", 0, (0, LARGEST), "Warn above this many dead letters; 0 means never.", unit="an hour"
        ),
        _number(
            "alert_recovery_failures",
            1,
            (0, LARGEST),
            "Warn above this many failures of the sweep, which ends what has expired; 0 means never.",
            unit="an hour",
        ),
    ),
    "Webhooks": (
        _boolean(
            "webhook_allow_private_networks",
            "Webhooks may use any address, also over http: for servers whose users are their operators.",
            default=False,
        ),
        _value("ca_bundle", FILE, "PEM file of authorities that webhooks trust besides the system's."),
        _value(
            "webhook_retries",
            LIST,
            "Waits after each failed delivery; after the last one it is a dead letter.",
            default=SCHEDULE,
            unit="seconds",
        ),
        _number("webhook_timeout", 15, (1, 30), "How long a receiver may take to answer.", unit="seconds"),
    ),
    "MCP over stdio": (
        _number(
            "mcp_session_seconds",
            60,
            (SESSION_TTL.least, CLAIMED_TASK_LEASE.most),
            "How long what was claimed through `holdfast mcp` stays claimed after the program was killed; it renews"
            " three times as often.",
            unit="seconds",
        ),
        _number(
            "mcp_idle_minutes",
            60,
            (1, 7 * 24 * 60),
            "`holdfast mcp` stops renewing after this time without a tool call.",
            unit="minutes",
        ),
    ),
    "Plans and payments": (
        _value(
            "plan",
            TEXT,
            "The plan of accounts that bought none. The server's own account is never limited.",
            default=SELF_HOSTED,
            has_flag=True,
        ),
        _value("plans", FILE, "TOML file with plans: they replace or extend the built-in ones.", has_flag=True),
        _value("paypal_client_id", CONFIDENTIAL, "The PayPal merchant; payments are off without it."),
        _value("paypal_secret", CONFIDENTIAL, "The merchant's secret."),
        _value(
            "paypal_url",
            URL,
            "Address of PayPal's API; `https://api-m.sandbox.paypal.com` for tests.",
            default=PAYPAL_URL,
        ),
    ),
}
"""Every setting, by the heading of its table on the page."""

FIELDS = tuple(field for fields in GROUPS.values() for field in fields)
BY_NAME = {field.name: field for field in FIELDS}

NOT_SETTINGS = {"URL", "API_KEY", "PROOF", "SOCKET_FD", "METRICS_FD", "METRICS_ROW"}
"""HOLDFAST_ variables of clients, tests, and of a server for its own worker processes."""
NOT_SUPPORTED = {
    "ADMIN_USERNAME", "GITHUB_CLIENT_ID", "GITHUB_CLIENT_SECRET", "GITHUB_REDIRECT_URI", "OAUTH_DASHBOARD_URL",
}  # fmt: skip
"""OctoStore's variables for features that this version does not have."""
