"""Metrics as text, in Prometheus' format or in OpenMetrics. Independent of the rest of Holdfast."""

from __future__ import annotations

import math
from collections.abc import Iterable

import msgspec

PLAIN = b"text/plain; version=0.0.4; charset=utf-8"
OPENMETRICS = b"application/openmetrics-text; version=1.0.0; charset=utf-8"

COUNTER, GAUGE, HISTOGRAM, INFO = "counter", "gauge", "histogram", "info"
_SUFFIXES = {COUNTER: "_total", INFO: "_info"}

Labels = dict[str, str]


class Sample(msgspec.Struct, frozen=True):
    """One value of a metric family."""

    value: float
    labels: Labels = {}
    suffix: str = ""


class Family(msgspec.Struct, frozen=True):
    """A metric and its samples. The name is without the suffix `_total` of a counter or `_info` of an info."""

    name: str
    kind: str
    help: str
    samples: tuple[Sample, ...]


def histogram(bounds: Iterable[float], buckets: Iterable[int], total: float, labels: Labels) -> tuple[Sample, ...]:
    """The samples of one histogram; buckets are cumulative, as the format requires."""
    samples, cumulative = [], 0
    for bound, count in zip([*bounds, math.inf], buckets, strict=True):
        cumulative += count
        samples.append(Sample(cumulative, {**labels, "le": _format_number(float(bound))}, "_bucket"))
    return *samples, Sample(total, labels, "_sum"), Sample(cumulative, labels, "_count")


def render(families: Iterable[Family], *, openmetrics: bool) -> bytes:
    """Render all families as one text."""
    lines: list[str] = []
    for family in families:
        suffix = _SUFFIXES.get(family.kind, "")
        title = family.name if openmetrics else family.name + suffix
        kind = GAUGE if family.kind == INFO and not openmetrics else family.kind  # the older format has no infos
        lines += [f"# HELP {title} {_escape(family.help, quotes=openmetrics)}", f"# TYPE {title} {kind}"]
        lines += [
            f"{family.name}{sample.suffix or suffix}{_render_labels(sample.labels)} {_format_number(sample.value)}"
            for sample in family.samples
        ]
    if openmetrics:
        lines.append("# EOF")
    return ("\n".join(lines) + "\n").encode()


def _render_labels(labels: Labels) -> str:
    if not labels:
        return ""
    return "{" + ",".join(f'{name}="{_escape(value)}"' for name, value in labels.items()) + "}"


def _escape(text: str, *, quotes: bool = True) -> str:
    text = text.replace("\\", r"\\").replace("\n", r"\n")
    return text.replace('"', r"\"") if quotes else text


def _format_number(value: float) -> str:
    if math.isfinite(value):
        return repr(value)
    return "NaN" if math.isnan(value) else "+Inf" if value > 0 else "-Inf"
