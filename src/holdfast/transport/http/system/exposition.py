"""Numbers as text for scrapers: Prometheus' format, or its sister OpenMetrics. Pure, and knows nothing of Holdfast."""

from __future__ import annotations

import math
from collections.abc import Iterable

import msgspec

PLAIN = b"text/plain; version=0.0.4; charset=utf-8"
OPENMETRICS = b"application/openmetrics-text; version=1.0.0; charset=utf-8"

COUNTER, GAUGE, HISTOGRAM, INFO = "counter", "gauge", "histogram", "info"
_ENDINGS = {COUNTER: "_total", INFO: "_info"}

Labels = dict[str, str]


class Sample(msgspec.Struct, frozen=True):
    """One number of a family."""

    value: float
    labels: Labels = {}
    suffix: str = ""


class Family(msgspec.Struct, frozen=True):
    """Numbers that mean the same thing. A counter's name is given without `_total`, an info's without `_info`."""

    name: str
    kind: str
    help: str
    samples: tuple[Sample, ...]


def histogram(bounds: Iterable[float], buckets: Iterable[int], total: float, labels: Labels) -> tuple[Sample, ...]:
    """The samples of one distribution: each bucket counts itself and all below it, as the format wants."""
    samples, seen = [], 0
    for bound, count in zip([*bounds, math.inf], buckets, strict=True):
        seen += count
        samples.append(Sample(seen, {**labels, "le": _number(float(bound))}, "_bucket"))
    return *samples, Sample(total, labels, "_sum"), Sample(seen, labels, "_count")


def render(families: Iterable[Family], *, openmetrics: bool) -> bytes:
    """All of them as one page."""
    lines: list[str] = []
    for family in families:
        ending = _ENDINGS.get(family.kind, "")
        titled = family.name if openmetrics else family.name + ending
        kind = GAUGE if family.kind == INFO and not openmetrics else family.kind  # the older format has no infos
        lines += [f"# HELP {titled} {_escaped(family.help, quotes=openmetrics)}", f"# TYPE {titled} {kind}"]
        lines += [
            f"{family.name}{sample.suffix or ending}{_labels(sample.labels)} {_number(sample.value)}"
            for sample in family.samples
        ]
    if openmetrics:
        lines.append("# EOF")
    return ("\n".join(lines) + "\n").encode()


def _labels(labels: Labels) -> str:
    if not labels:
        return ""
    return "{" + ",".join(f'{name}="{_escaped(value)}"' for name, value in labels.items()) + "}"


def _escaped(text: str, *, quotes: bool = True) -> str:
    text = text.replace("\\", r"\\").replace("\n", r"\n")
    return text.replace('"', r"\"") if quotes else text


def _number(value: float) -> str:
    if math.isfinite(value):
        return repr(value)
    return "NaN" if math.isnan(value) else "+Inf" if value > 0 else "-Inf"
