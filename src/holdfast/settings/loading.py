"""Builds `Settings` from flags, environment variables and defaults, or refuses with every problem at once."""

from __future__ import annotations

import os
import re
import ssl
import tomllib
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec

from holdfast import extras
from holdfast.addresses import is_loopback, parse_block
from holdfast.core.plan import PLANS, Catalogue, Plan, find_inconsistencies
from holdfast.core.webhooks.delivery import SCHEDULE
from holdfast.decoding import convert
from holdfast.settings.credentials import read_paypal, read_secret, read_static_tokens
from holdfast.settings.field import BOOLEAN, CHOICE, NUMBER, PREFIX
from holdfast.settings.fields import BY_NAME, DEFAULT_PORT, FIELDS, LEAST_STREAMS, NOT_SUPPORTED, STREAM_BYTES
from holdfast.settings.model import Settings, default_store, store_address
from holdfast.settings.reader import Reader
from holdfast.tls import tls_problems

CORES_FOR_FRONTS, FRONTED_WORKERS = 4, 3
"""With this many processor cores a server on SQLite has an engine process and two fronts."""


class BadSettings(Exception):
    """What is wrong with the configuration, one line for each problem."""

    def __init__(self, problems: list[str]) -> None:
        super().__init__("\n".join(problems))
        self.problems = problems


def load(flags: Mapping[str, str | None], environ: Mapping[str, str] | None = None) -> tuple[Settings, list[str]]:
    """(settings, warnings) from flags, else HOLDFAST_ variables, else defaults. BadSettings lists every problem."""
    reader = Reader(flags, os.environ if environ is None else environ)
    settings = _read_all(reader)
    if reader.problems:
        raise BadSettings(reader.problems)
    return settings, reader.warnings()


def _read_all(reader: Reader) -> Settings:
    host, port = _read_address(reader)
    store = _read_store(reader)
    workers = reader.number("workers", default_workers(store, cores()))
    if workers > 1 and store == "memory:":
        reader.problems.append("--workers: a store in memory belongs to one process")
    admin_key, root_key = read_secret(reader, "admin_key"), read_secret(reader, "root_key")
    for name in sorted(NOT_SUPPORTED):
        if reader.text(name.lower()):
            reader.problems.append(f"{PREFIX}{name}: this version does not have that feature yet; unset it")
    plans = _read_plans(reader)
    special = {
        "host": host,
        "port": port,
        "public_url": reader.web_address("public_url"),
        "trusted_proxies": _read_trusted_proxies(reader),
        "allowed_origins": _read_allowed_origins(reader),
        **_read_tls(reader),
        "store": store,
        "workers": workers,
        "max_streams": reader.number("max_streams", default_streams(memory_bytes())),
        "root_key": root_key,
        "admin_key": admin_key,
        "static_tokens": read_static_tokens(reader, {key for key in (admin_key, root_key) if key}),
        **_read_traces(reader),
        **read_paypal(reader),
        "postgres_listen": reader.text("postgres_listen"),
        "local_registration": _read_local_registration(reader, host),
        "webhook_retries": _read_webhook_retries(reader),
        "ca_bundle": _read_ca_bundle(reader),
        "plans": plans,
        "plan": reader.choice("plan", plans),
    }
    plain = {
        field.name: _READ_KIND[field.kind](reader, field.name)
        for field in FIELDS
        if field.kind in _READ_KIND and field.name not in special
    }
    return Settings(**plain, **special)


_READ_KIND: dict[str, Callable[[Reader, str], Any]] = {
    NUMBER: Reader.number,
    BOOLEAN: Reader.boolean,
    CHOICE: Reader.choice,
}
"""Fields of these kinds need no other check than their kind's."""


def default_workers(store: str, available: int) -> int:
    """How many processes answer requests: PostgreSQL's are whole servers, and fronts need cores of their own."""
    return FRONTED_WORKERS if store.startswith("sqlite:") and available >= CORES_FOR_FRONTS else 1


def default_streams(memory: int) -> int:
    """How many streams fit into a quarter of the memory; a process has other limits too, such as that of open files."""
    return min(max(memory // 4 // STREAM_BYTES, LEAST_STREAMS), BY_NAME["max_streams"].most)


def memory_bytes() -> int:
    """The memory that this process may use: the machine's, or less in a container. 0 if that is not known."""
    machine, limit = 0, ""
    with suppress(OSError, ValueError):
        machine = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
        limit = Path("/sys/fs/cgroup/memory.max").read_text().strip()
    return min(machine, int(limit)) if limit.isdigit() else machine


def cores() -> int:
    """How many processor cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _read_address(reader: Reader) -> tuple[str, int]:
    bound, host = reader.text("bind_addr"), reader.text("host")
    if bound and not re.fullmatch(r"(\[[^\]]+\]|[^:]+):\d+", bound):
        reader.add_problem("bind_addr", f"expected host:port, got {bound!r}")
        bound = None
    bound_host, _, bound_port = (bound or "").rpartition(":")
    port = reader.number("port", int(bound_port or DEFAULT_PORT))
    return host or bound_host.strip("[]") or "127.0.0.1", port


def _read_store(reader: Reader) -> str:
    path = reader.text("database_url")
    store = reader.text("store") or (path and store_address(path)) or default_store()
    if "://" in store:
        store = store_address(store)
    if store.startswith(("postgresql://", "postgres://")):
        if not extras.is_installed(extras.POSTGRES):
            command = extras.install_command(extras.POSTGRES)
            reader.add_problem("store", f"a PostgreSQL store needs its driver: {command}")
    elif store != "memory:" and not (store.startswith("sqlite:///") and len(store) > len("sqlite:///")):
        without_password = re.sub(r"//[^/@]*@", "//…@", store)
        is_path = "://" not in store and ("/" in store or "." in store)
        hint = f"; for this file write sqlite:///{store}" if is_path else ""
        expected = "expected sqlite:///path.db, postgresql://… or memory:"
        reader.add_problem("store", f"{expected}, got {without_password!r}{hint}")
    return store


def _read_trusted_proxies(reader: Reader) -> tuple[str, ...]:
    blocks = []
    for entry in (reader.text("trusted_proxies") or "").split(","):
        try:
            blocks += [str(parse_block(entry.strip()))] if entry.strip() else []
        except ValueError as error:
            reader.add_problem("trusted_proxies", str(error))
    return tuple(blocks)


def _read_allowed_origins(reader: Reader) -> tuple[str, ...]:
    listed = [entry.strip().lower() for entry in (reader.text("allowed_origins") or "").split(",") if entry.strip()]
    for entry in listed:
        if not re.fullmatch(r"[a-z][a-z0-9+.-]*://[^/?#\s]+", entry):
            reader.add_problem("allowed_origins", f"expected https://host[:port], got {entry!r}")
    return tuple(listed)


def _read_tls(reader: Reader) -> dict[str, Any]:
    files = {"tls_cert": reader.text("tls_cert"), "tls_key": reader.text("tls_key")}
    for name, problem in tls_problems(**files):
        reader.add_problem(name, problem)
    return files


def _read_traces(reader: Reader) -> dict[str, Any]:
    """Traces are on if our own setting names a collector, or the variables that every OpenTelemetry program reads."""
    endpoint = reader.web_address("otlp_endpoint")
    is_off = reader.environ.get("OTEL_SDK_DISABLED", "").lower() == "true"
    is_asked = any(reader.environ.get(f"OTEL_EXPORTER_OTLP_{kind}ENDPOINT") for kind in ("", "TRACES_"))
    return {"traces": (endpoint is not None or is_asked) and not is_off, "otlp_endpoint": endpoint}


def _read_local_registration(reader: Reader, host: str) -> bool:
    is_on = reader.boolean("local_registration")
    if is_on and not is_loopback(host):
        reader.add_problem("local_registration", f"only on a loopback address, not on {host}")
    if is_on and (reader.text("static_tokens") or reader.text("static_tokens_file")):
        reader.add_problem("local_registration", "not together with static tokens")
    return is_on


def _read_webhook_retries(reader: Reader) -> tuple[float, ...]:
    text = reader.text("webhook_retries")
    if text is None:
        return SCHEDULE
    waits = [entry.strip() for entry in text.split(",")]
    if not all(re.fullmatch(r"[0-9]{1,6}(\.[0-9]{1,3})?", wait) for wait in waits):
        reader.add_problem("webhook_retries", f"expected seconds between commas, like 5,300,1800, got {text!r}")
        return SCHEDULE
    return tuple(map(float, waits))


def _read_ca_bundle(reader: Reader) -> str | None:
    path = reader.text("ca_bundle")
    try:
        if path is not None:
            ssl.create_default_context().load_verify_locations(path)
    except (OSError, ValueError) as error:
        reader.add_problem("ca_bundle", f"{path} holds no certificates in PEM: {error}")
    return path


class _PlanTable(Plan, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A plan in a TOML file. Unknown keys are refused: a mistyped limit must not mean no limit."""

    def to_plan(self) -> Plan:
        return convert(msgspec.structs.asdict(self), Plan)


def _read_plans(reader: Reader) -> Catalogue:
    """The built-in plans with those of a file in their place: one table a plan, a limit that is left out is none."""
    path = reader.text("plans")
    if path is None:
        return PLANS
    plans = dict(PLANS)
    try:
        tables = tomllib.loads(Path(path).read_text())
        for plan_id, table in tables.items():
            plan = convert({"id": plan_id, "name": plan_id.title()} | table, _PlanTable).to_plan()
            plans[plan_id] = plan
            reader.problems += [f"{path}: plan {plan_id}: {problem}" for problem in find_inconsistencies(plan)]
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError, msgspec.ValidationError, TypeError) as error:
        reader.add_problem("plans", f"{path}: {error}")
    return plans
