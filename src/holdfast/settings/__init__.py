"""Everything that can be set, each with its unit and default, read and checked before anything starts."""

from __future__ import annotations

import os
import re
import ssl
import stat
import tomllib
from collections.abc import Container, Mapping
from pathlib import Path
from typing import Any

import msgspec
import platformdirs

from holdfast import extras
from holdfast.addresses import is_loopback, parse_block, url_problem
from holdfast.core.plan import PLANS, SELF_HOSTED, Catalogue, Plan, find_inconsistencies
from holdfast.core.principal import is_well_formed
from holdfast.core.webhooks.delivery import SCHEDULE
from holdfast.telemetry.logs import FORMATS, LEVELS
from holdfast.tls import tls_problems

PREFIX = "HOLDFAST_"
MIN_TOKEN = 24
DEFAULT_PORT = 7700
PAYPAL_URL = "https://api-m.paypal.com"

_FORM = "visible ASCII characters without spaces"
_TRUE, _FALSE = {"1", "true", "on", "yes"}, {"0", "false", "off", "no"}
_CLIENT = {"URL", "API_KEY", "PROOF", "SOCKET_FD", "BOARD_FD", "BOARD_ROW"}
_LATER = {
    "ADMIN_USERNAME", "GITHUB_CLIENT_ID", "GITHUB_CLIENT_SECRET", "GITHUB_REDIRECT_URI",
    "OAUTH_DASHBOARD_URL",
}  # fmt: skip


class _StrictPlan(Plan, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A plan as a file spells it: a mistyped limit must not mean none."""

    def plan(self) -> Plan:
        return msgspec.convert(msgspec.structs.asdict(self), Plan)


class BadSettings(Exception):
    """What is wrong with the configuration, one line each."""

    def __init__(self, problems: list[str]) -> None:
        super().__init__("\n".join(problems))
        self.problems = problems


class Settings(msgspec.Struct, frozen=True):
    """One frozen set of decisions."""

    host: str = "127.0.0.1"
    port: int = DEFAULT_PORT
    public_url: str | None = None
    """https://host[/path]: where clients reach this server, if that is not where it listens."""
    trusted_proxies: tuple[str, ...] = ()
    """Addresses and CIDR blocks of peers whose X-Forwarded-For and X-Forwarded-Proto are believed."""
    allowed_origins: tuple[str, ...] = ()
    """Origins of web pages that may speak to `/mcp`, besides the server's own."""
    tls_cert: str | None = None
    tls_key: str | None = None
    """PEM files; with them the server speaks https."""
    allow_insecure_http: bool = False
    """Whether keys may come over plain HTTP from other machines."""
    store: str = ""
    """sqlite:///path.db, postgresql://… or memory:"""
    workers: int = 1
    lanes: int = 2
    """Connections that write, per process, on PostgreSQL."""
    root_key: str | None = None
    admin_key: str | None = None
    static_tokens: tuple[tuple[str, str], ...] = ()
    """(name, token)"""
    public_elections: bool = True
    max_public_elections: int = 10_000
    public_election_requests_per_minute: int = 600
    public_election_watch_streams_global: int = 1024
    public_election_watch_streams_per_client: int = 8
    public_election_watch_max_seconds: int = 900
    max_streams: int = 2_000
    """How many may follow the log at once, on each process; more are answered 503."""
    max_locks_per_user: int = 100
    task_retention_days: int = 30
    """How long finished tasks are kept; 0 keeps them for ever."""
    event_retention_days: int = 90
    """How long the log is kept; 0 keeps it for ever."""
    traces: bool = False
    """Whether traces are sent: when OTEL_EXPORTER_OTLP_ENDPOINT or HOLDFAST_OTLP_ENDPOINT is set."""
    otlp_endpoint: str | None = None
    """Where to, if not where OpenTelemetry's own variables say."""
    log_format: str | None = None
    """json or text; by default text on a terminal and JSON elsewhere."""
    log_level: str = "info"
    access_log: str = "errors"
    """all, errors or off: errors are answers of 5xx, and slow ones."""
    alert_conflicts: int = 0
    alert_lapses: int = 0
    alert_dead_letters: int = 0
    alert_recovery_failures: int = 1
    """More than so many in an hour is worth a warning; 0 is never."""
    purge_dead_letters: bool = True
    """Whether dead letters go as other finished tasks do."""
    paypal_client_id: str | None = None
    paypal_secret: str | None = None
    """The merchant that payments go to; without both, nobody can pay."""
    paypal_url: str = PAYPAL_URL
    postgres_pooled: bool = False
    """The PostgreSQL address is a pooler in transaction mode."""
    postgres_listen: str | None = None
    """A direct address for LISTEN when the other one is a pooler."""
    local_registration: bool = False
    """Whether anybody on this machine may take a name and a token: OctoStore's way to sign up."""
    webhook_allow_private_networks: bool = False
    """Whether webhooks may lead to any address, over http too: for servers whose users are their operators."""
    webhook_retries: tuple[float, ...] = SCHEDULE
    """Seconds to wait after each failure of a delivery; after the last of them it is a dead letter."""
    webhook_timeout: int = 15
    """Seconds that a receiver has to answer."""
    ca_bundle: str | None = None
    """A PEM file of authorities that webhooks trust besides the system's."""
    plan: str = SELF_HOSTED
    """What accounts have that bought nothing. The server's own account is never limited."""
    plans: Catalogue = msgspec.field(default_factory=lambda: PLANS)

    def __repr__(self) -> str:
        """Not its values: some are secret."""
        return f"<settings of {self.url}>"

    @property
    def url(self) -> str:
        """Where the server answers."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{'http' if self.tls_cert is None else 'https'}://{host}:{self.port}"

    @property
    def home(self) -> str:
        """Where clients reach it: what documents and links show."""
        return self.public_url or self.url


def default_store() -> str:
    """An SQLite file in the user's state folder."""
    return f"sqlite:///{platformdirs.user_state_path('holdfast') / 'holdfast.db'}"


def sqlite_path(store: str) -> Path:
    """The file that a sqlite:/// address names."""
    return Path(store.removeprefix("sqlite:///")).expanduser()


def load(flags: Mapping[str, str | None], environ: Mapping[str, str] | None = None) -> tuple[Settings, list[str]]:
    """(settings, warnings) from flags, else HOLDFAST_ variables, else defaults. BadSettings tells every problem."""
    reader = _Reader(flags, os.environ if environ is None else environ)
    settings = reader.settings()
    if reader.problems:
        raise BadSettings(reader.problems)
    return settings, reader.warnings()


class _Reader:
    """Reads one value after the other and gathers what is wrong."""

    def __init__(self, flags: Mapping[str, str | None], environ: Mapping[str, str]) -> None:
        self._flags = flags
        self._environ = environ
        self._seen: set[str] = set()
        self.problems: list[str] = []

    def settings(self) -> Settings:
        host, port = self._address()
        store = self._store()
        plans = self._plans()
        workers = self._number("workers", 1, 1, 64)
        if workers > 1 and not store.startswith("postgres"):
            self.problems.append("--workers: more than one worker needs a PostgreSQL store (--store postgresql://…)")
        admin_key = self._secret("ADMIN_KEY")
        root_key = self._secret("ROOT_KEY")
        for name in sorted(_LATER):
            if self._text(name):
                self.problems.append(f"{PREFIX}{name}: this version does not have that feature yet; unset it")
        return Settings(
            host=host,
            port=port,
            public_url=self._web_address("public_url"),
            trusted_proxies=self._trusted_proxies(),
            allowed_origins=self._allowed_origins(),
            allow_insecure_http=self._boolean("allow_insecure_http", default=False),
            **self._tls(),
            store=store,
            workers=workers,
            lanes=self._number("lanes", 2, 1, 64),
            root_key=root_key,
            admin_key=admin_key,
            static_tokens=self._static_tokens({key for key in (admin_key, root_key) if key}),
            public_elections=self._boolean("public_elections", default=True),
            max_public_elections=self._number("max_public_elections", 10_000, 1, 10**9),
            public_election_requests_per_minute=self._number("public_election_requests_per_minute", 600, 1, 10**9),
            public_election_watch_streams_global=self._number("public_election_watch_streams_global", 1024, 1, 10**9),
            public_election_watch_streams_per_client=self._number(
                "public_election_watch_streams_per_client", 8, 1, 10**9
            ),
            public_election_watch_max_seconds=self._number("public_election_watch_max_seconds", 900, 1, 10**9),
            max_streams=self._number("max_streams", 2_000, 1, 10**6),
            max_locks_per_user=self._number("max_locks_per_user", 100, 1, 10**9),
            task_retention_days=self._number("task_retention_days", 30, 0, 36_500),
            event_retention_days=self._number("event_retention_days", 90, 0, 36_500),
            **self._traces(),
            log_format=self._text("LOG_FORMAT") and self._choice("log_format", "json", FORMATS),
            log_level=self._choice("log_level", "info", LEVELS),
            access_log=self._choice("access_log", "errors", ("all", "errors", "off")),
            alert_conflicts=self._number("alert_conflicts", 0, 0, 10**9),
            alert_lapses=self._number("alert_lapses", 0, 0, 10**9),
            alert_dead_letters=self._number("alert_dead_letters", 0, 0, 10**9),
            alert_recovery_failures=self._number("alert_recovery_failures", 1, 0, 10**9),
            purge_dead_letters=self._boolean("purge_dead_letters", default=True),
            **self._paypal(),
            postgres_pooled=self._boolean("postgres_pooled", default=False),
            postgres_listen=self._text("POSTGRES_LISTEN"),
            local_registration=self._local_registration(host),
            webhook_allow_private_networks=self._boolean("webhook_allow_private_networks", default=False),
            webhook_retries=self._webhook_retries(),
            webhook_timeout=self._number("webhook_timeout", 15, 1, 30),
            ca_bundle=self._ca_bundle(),
            plans=plans,
            plan=self._choice("plan", SELF_HOSTED, plans),
        )

    def _webhook_retries(self) -> tuple[float, ...]:
        text = self._text("WEBHOOK_RETRIES")
        if text is None:
            return SCHEDULE
        waits = [entry.strip() for entry in text.split(",")]
        if not all(re.fullmatch(r"[0-9]{1,6}(\.[0-9]{1,3})?", wait) for wait in waits):
            self.problems.append(
                f"{PREFIX}WEBHOOK_RETRIES: expected seconds between commas, like 5,300,1800, got {text!r}"
            )
            return SCHEDULE
        return tuple(map(float, waits))

    def _ca_bundle(self) -> str | None:
        path = self._text("CA_BUNDLE")
        try:
            if path is not None:
                ssl.create_default_context().load_verify_locations(path)
        except (OSError, ValueError) as error:
            self.problems.append(f"{PREFIX}CA_BUNDLE: {path} holds no certificates in PEM: {error}")
        return path

    def _plans(self) -> Catalogue:
        """Our plans, with those of a file in their places: one table a plan, None is spelled by leaving a limit out."""
        path = self._text("PLANS")
        if path is None:
            return PLANS
        plans = dict(PLANS)
        try:
            tables = tomllib.loads(Path(path).read_text())
            for plan_id, table in tables.items():
                plans[plan_id] = msgspec.convert({"id": plan_id, "name": plan_id.title()} | table, _StrictPlan).plan()
                self.problems += [
                    f"{path}: plan {plan_id}: {problem}" for problem in find_inconsistencies(plans[plan_id])
                ]
        except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError, msgspec.ValidationError, TypeError) as error:
            self.problems.append(f"{self._label('plans')}: {path}: {error}")
        return plans

    def _paypal(self) -> dict[str, Any]:
        """The merchant; half of one is a mistake. Its secret is never repeated."""
        client_id, secret = self._text("PAYPAL_CLIENT_ID") or None, self._text("PAYPAL_SECRET") or None
        for name, value, other in (("CLIENT_ID", client_id, secret), ("SECRET", secret, client_id)):
            if other and not value:
                self.problems.append(f"{PREFIX}PAYPAL_{name}: PayPal needs both the client id and the secret")
            elif value and not _usable(value):
                self.problems.append(f"{PREFIX}PAYPAL_{name}: must be {_FORM}")
        url = self._web_address("paypal_url") or PAYPAL_URL
        return {"paypal_client_id": client_id, "paypal_secret": secret, "paypal_url": url}

    def _local_registration(self, host: str) -> bool:
        wanted = self._boolean("local_registration", default=False)
        if not wanted:
            return False
        if not is_loopback(host):
            self.problems.append(f"{PREFIX}LOCAL_REGISTRATION: only on a loopback address, not on {host}")
        if self._text("STATIC_TOKENS") or self._text("STATIC_TOKENS_FILE"):
            self.problems.append(f"{PREFIX}LOCAL_REGISTRATION: not together with static tokens")
        return True

    def _choice(self, name: str, default: str, known: Container[str]) -> str:
        text = self._text(name.upper())
        if text is not None and text not in known:
            self.problems.append(f"{self._label(name)}: there is no {name} {text!r}")
        return default if text is None else text

    def warnings(self) -> list[str]:
        unknown = [
            name
            for name in self._environ
            if name.startswith(PREFIX) and name.removeprefix(PREFIX) not in self._seen | _CLIENT
        ]
        return [f"{name} is not a setting of this version; it is ignored" for name in sorted(unknown)]

    def _text(self, name: str) -> str | None:
        """A value by its upper-case name: the flag first, then the environment."""
        self._seen.add(name)
        flag = self._flags.get(name.lower())
        return flag if flag is not None else self._environ.get(PREFIX + name)

    def _label(self, name: str) -> str:
        """What the user typed: the flag, or the variable."""
        return f"--{name.replace('_', '-')}" if self._flags.get(name) is not None else f"{PREFIX}{name.upper()}"

    def _address(self) -> tuple[str, int]:
        bound = self._text("BIND_ADDR")
        host = self._text("HOST")
        if bound and not re.fullmatch(r"(\[[^\]]+\]|[^:]+):\d+", bound):
            self.problems.append(f"{PREFIX}BIND_ADDR: expected host:port, got {bound!r}")
            bound = None
        bound_host, _, bound_port = (bound or "").rpartition(":")
        port = self._number("port", int(bound_port or DEFAULT_PORT), 0, 65535)
        return host or bound_host.strip("[]") or "127.0.0.1", port

    def _store(self) -> str:
        path = self._text("DATABASE_URL")
        store = (
            self._text("STORE") or (path if path is None or "://" in path else f"sqlite:///{path}") or default_store()
        )
        if store.startswith(("postgresql://", "postgres://")):
            if not extras.is_installed(extras.POSTGRES):
                command = extras.install_command(extras.POSTGRES)
                self.problems.append(f"{self._label('store')}: a PostgreSQL store needs its driver: {command}")
            return store
        if store == "memory:":
            return store
        if store.startswith("sqlite:///") and len(store) > len("sqlite:///"):
            return store
        shown = re.sub(r"//[^/@]*@", "//…@", store)
        self.problems.append(
            f"{self._label('store')}: expected sqlite:///path.db, postgresql://… or memory:, got {shown!r}"
        )
        return store

    def _number(self, name: str, default: int, least: int, most: int) -> int:
        text = self._text(name.upper())
        if text is None:
            return default
        if not re.fullmatch(r"[0-9]{1,12}", text) or not least <= int(text) <= most:
            label = self._label(name)
            self.problems.append(f"{label}: expected a whole number from {least} to {most}, got {text!r}")
            return default
        return int(text)

    def _boolean(self, name: str, *, default: bool) -> bool:
        text = self._text(name.upper())
        if text is None:
            return default
        if text.lower() not in _TRUE | _FALSE:
            self.problems.append(f"{self._label(name)}: expected true or false, got {text!r}")
        return text.lower() in _TRUE

    def _web_address(self, name: str) -> str | None:
        url = self._text(name.upper())
        problem = None if url is None else url_problem(url)
        if problem is not None:
            self.problems.append(f"{self._label(name)}: {problem}")
        return None if url is None else url.rstrip("/")

    def _trusted_proxies(self) -> tuple[str, ...]:
        blocks = []
        for entry in (self._text("TRUSTED_PROXIES") or "").split(","):
            try:
                blocks += [str(parse_block(entry.strip()))] if entry.strip() else []
            except ValueError as error:
                self.problems.append(f"{self._label('trusted_proxies')}: {error}")
        return tuple(blocks)

    def _allowed_origins(self) -> tuple[str, ...]:
        listed = [entry.strip().lower() for entry in (self._text("ALLOWED_ORIGINS") or "").split(",") if entry.strip()]
        for entry in listed:
            if not re.fullmatch(r"[a-z][a-z0-9+.-]*://[^/?#\s]+", entry):
                self.problems.append(f"{PREFIX}ALLOWED_ORIGINS: expected https://host[:port], got {entry!r}")
        return tuple(listed)

    def _traces(self) -> dict[str, Any]:
        """Asked for by our own setting, or by the variables that every program with OpenTelemetry reads."""
        endpoint = self._web_address("otlp_endpoint")
        off = self._environ.get("OTEL_SDK_DISABLED", "").lower() == "true"
        asked = any(self._environ.get(f"OTEL_EXPORTER_OTLP_{kind}ENDPOINT") for kind in ("", "TRACES_"))
        return {"traces": (endpoint is not None or asked) and not off, "otlp_endpoint": endpoint}

    def _tls(self) -> dict[str, Any]:
        files = {"tls_cert": self._text("TLS_CERT"), "tls_key": self._text("TLS_KEY")}
        self.problems += [f"{self._label(name)}: {problem}" for name, problem in tls_problems(**files)]
        return files

    def _secret(self, name: str) -> str | None:
        secret = self._text(name)
        if secret is None:
            return None
        if len(secret) < MIN_TOKEN or not _usable(secret):
            self.problems.append(f"{PREFIX}{name}: must be at least {MIN_TOKEN} {_FORM}")
        elif not is_well_formed(secret):
            self.problems.append(f"{PREFIX}{name}: it looks like one of our keys, but its checksum is wrong")
        return secret

    def _static_tokens(self, taken: set[str]) -> tuple[tuple[str, str], ...]:
        found: list[tuple[str, str]] = []
        listed = self._text("STATIC_TOKENS")
        if listed is not None:
            found += self._parse(f"{PREFIX}STATIC_TOKENS", listed)
        path = self._text("STATIC_TOKENS_FILE")
        if path is not None:
            found += self._parse(f"{PREFIX}STATIC_TOKENS_FILE", self._owner_only(path))
        names = [name.lower() for name, _ in found]
        for name in sorted({name for name in names if names.count(name) > 1}):
            self.problems.append(f"static tokens: the name {name!r} is listed twice")
        tokens = [token for _, token in found]
        if len(tokens) != len(set(tokens)):
            self.problems.append("static tokens: one token is listed twice")
        if taken & set(tokens):
            self.problems.append("static tokens: a token equals the admin key or the root key")
        return tuple(found)

    def _owner_only(self, path: str) -> str:
        """The text of a file that nobody but its owner can read."""
        try:
            mode = Path(path).stat().st_mode
            if not stat.S_ISREG(mode) or mode & 0o077:
                self.problems.append(
                    f"{PREFIX}STATIC_TOKENS_FILE: {path} must be a regular file only its owner can read (chmod 600)"
                )
                return "#"
            return Path(path).read_text()
        except (OSError, UnicodeDecodeError) as error:
            self.problems.append(f"{PREFIX}STATIC_TOKENS_FILE: cannot read {path}: {error}")
            return "#"

    def _parse(self, where: str, text: str) -> list[tuple[str, str]]:
        """name:token entries between commas or newlines; a bare token names itself by its position."""
        found = []
        entries = [entry.strip() for entry in re.split(r"[,\n]", text)]
        entries = [entry for entry in entries if entry and not entry.startswith("#")]
        if not entries and text != "#":
            self.problems.append(f"{where}: lists no tokens")
        for place, entry in enumerate(entries, 1):
            name, colon, token = (part.strip() for part in entry.partition(":"))
            if not colon:
                name, token = f"token-{place}", name
            if not name or not token:
                self.problems.append(f"{where}: entry {place} needs a name and a token, as name:token")
            elif not is_well_formed(token):
                self.problems.append(
                    f"{where}: the token of {name!r} looks like one of our keys, but its checksum is wrong"
                )
            elif len(token) < MIN_TOKEN or not _usable(token):
                self.problems.append(f"{where}: the token of {name!r} must be at least {MIN_TOKEN} {_FORM}")
            else:
                found.append((name, token))
        return found


def _usable(secret: str) -> bool:
    return all("!" <= character <= "~" for character in secret)
