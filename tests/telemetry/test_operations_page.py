"""The operations guide: its tables equal the metrics and settings of the code."""

import re
from pathlib import Path

from holdfast.settings import Settings, load
from holdfast.telemetry import logs
from holdfast.telemetry.metric_names import METRICS
from holdfast.transport.http.access import access_log
from holdfast.transport.http.system.metrics import STORE_METRICS

PAGE = Path(__file__).parents[2] / "docs/guides/operations.md"
ROW = re.compile(r"^\| `(holdfast_\w+)` \| (\w+) \| (.*?) \| (.*) \|$", re.MULTILINE)
ENDINGS = {"counter": "_total", "info": "_info"}


def test_every_metric_is_on_the_page_and_nothing_else_is():
    listed = {name: (kind, labels, text) for name, kind, labels, text in ROW.findall(PAGE.read_text())}
    known = {
        metric.name + ENDINGS.get(metric.kind, ""): (metric.kind, labelled(metric.labels), metric.help)
        for metric in METRICS.metrics
        if metric.exported
    }
    for name, text in STORE_METRICS.items():
        kind = "info" if name == "build" else "gauge"
        full = f"holdfast_{name}" + ENDINGS.get(kind, "")
        known[full] = (kind, listed[full][1], text)
    assert listed == known


def labelled(labels):
    return ", ".join(f"`{label}`" for label in labels) or "none"


def test_metric_names_have_base_units_and_the_suffix_of_their_kind():
    for metric in METRICS.metrics:
        if metric.exported:
            assert re.fullmatch(r"holdfast_[a-z_]+", metric.name)
            assert not re.search(r"_(total|count|sum|bucket|ms|millis|minutes|kb|mb)$", metric.name)
            assert metric.help.endswith(".")
    assert len({metric.name for metric in METRICS.metrics}) == len(METRICS.metrics)


def test_the_settings_on_the_page_are_accepted():
    text = PAGE.read_text()
    for choice in (*logs.FORMATS, *logs.LEVELS, *access_log.CHOICES):
        assert f"`{choice}`" in text
    settings, _ = load({}, {"HOLDFAST_LOG_FORMAT": "text", "HOLDFAST_LOG_LEVEL": "debug", "HOLDFAST_ACCESS_LOG": "off"})
    assert (settings.log_format, settings.log_level, settings.access_log) == ("text", "debug", "off")
    assert (Settings().log_format, Settings().log_level, Settings().access_log) == (None, "info", "errors")
    for field in logs.FIELDS:
        assert f"`{field}`" in text
