"""Alerts and the Grafana dashboard use only metrics, labels and label values that the server exports."""

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

from holdfast.core.task import STATES
from holdfast.telemetry.kinds import COUNTER, HISTOGRAM
from holdfast.telemetry.metric_names import METRICS
from holdfast.transport.http.system.metrics import STORE_METRICS
from tests.deploy.promql import problems

DEPLOY = Path(__file__).parents[2] / "deploy"
ALERTS = DEPLOY / "prometheus-alerts.yaml"
DASHBOARD = json.loads((DEPLOY / "grafana-dashboard.json").read_text())
RULES = yaml.safe_load(ALERTS.read_text())["groups"][0]["rules"]
PANELS = [panel for panel in DASHBOARD["panels"] if panel["type"] != "row"]


def known_series():
    """Names of all series with their labels and the values of these; no values where any may occur."""
    known = {"holdfast_build_info": {"version": (), "python": (), "store": ()}, "holdfast_tasks": {"state": STATES}}
    known |= {f"holdfast_{name}": {} for name in STORE_METRICS if name not in {"build", "tasks"}}
    for metric in METRICS.metrics:
        if not metric.exported:
            continue
        if metric.kind == HISTOGRAM:
            known[f"{metric.name}_bucket"] = {**metric.labels, "le": ()}
            known |= {f"{metric.name}_{part}": metric.labels for part in ("sum", "count")}
        else:
            known[metric.name + ("_total" if metric.kind == COUNTER else "")] = metric.labels
    return known


KNOWN = known_series()


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule["alert"])
def test_alerts_use_existing_series(rule):
    assert problems(rule["expr"], KNOWN) == []
    assert rule["labels"]["severity"] in {"critical", "warning"}
    assert rule["annotations"]["summary"]


@pytest.mark.parametrize("panel", PANELS, ids=lambda panel: panel["title"])
def test_panels_use_existing_series_and_the_chosen_servers(panel):
    assert panel["targets"]
    for target in panel["targets"]:
        assert problems(target["expr"], KNOWN) == []
        for selector in re.findall(r"holdfast_\w+(\{[^}]*\})?", target["expr"]):
            assert 'job=~"$job", instance=~"$instance"' in selector, target["expr"]
        named = set(re.findall(r"\{\{(\w+)\}\}", target["legendFormat"]))
        assert named <= {"job", "instance"} | {label for labels in KNOWN.values() for label in labels}


@pytest.mark.parametrize(
    ("expression", "problem"),
    [
        ("rate(holdfast_claim_total[5m])", "holdfast_claim_total does not exist"),
        ('holdfast_waiters{what="name"}', "holdfast_waiters has no label what"),
        ('holdfast_refused_total{reason=~"overload|draining"}', "reason of holdfast_refused_total is never overload"),
        ("sum by (state) (holdfast_lanes)", "no series of the expression has the label state"),
        ("histogram_quantile(0.5, holdfast_batch_commands)", "holdfast_batch_commands does not exist"),
    ],
)
def test_a_wrong_expression_is_found(expression, problem):
    assert problems(expression, KNOWN) == [problem]


def test_panels_have_ids_of_their_own_and_do_not_overlap():
    assert len({panel["id"] for panel in DASHBOARD["panels"]}) == len(DASHBOARD["panels"])
    cells = set()
    for panel in DASHBOARD["panels"]:
        place = panel["gridPos"]
        taken = {(place["x"] + x, place["y"] + y) for x in range(place["w"]) for y in range(place["h"])}
        assert not cells & taken, panel["title"]
        assert place["x"] + place["w"] <= 24
        cells |= taken


def test_prometheus_accepts_the_alerts_and_their_tests_pass():
    promtool = shutil.which("promtool")
    if promtool is None:
        pytest.skip("promtool is missing; Debian's package prometheus has it")
    for words in (["check", "rules", ALERTS.name], ["test", "rules", "prometheus-alerts.test.yaml"]):
        done = subprocess.run([promtool, *words], cwd=DEPLOY, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
