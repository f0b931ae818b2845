"""Prometheus and OpenMetrics text, read back by an independent parser."""

import math

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from holdfast.transport.http.system.exposition import COUNTER, GAUGE, HISTOGRAM, INFO, Family, Sample, histogram, render
from tests.http.metrics_parser import scrape

FAMILIES = [
    Family("x_requests", COUNTER, 'How many "requests"\nthere \\were.', (Sample(3, {"class": "a"}), Sample(4))),
    Family("x_seconds", HISTOGRAM, "How long.", histogram((0.5, 1.0), (2, 0, 1), 7.25, {"class": "a"})),
    Family("x_heat", GAUGE, "How hot.", (Sample(-1.5),)),
    Family("x_build", INFO, "Which.", (Sample(1, {"version": "1"}),)),
]


@pytest.mark.parametrize("openmetrics", [False, True])
def test_what_is_written_can_be_read_back(openmetrics):
    page = scrape(render(FAMILIES, openmetrics=openmetrics), openmetrics=openmetrics)
    ending = "" if openmetrics else "_total"
    assert page.kinds[f"x_requests{ending}"] == "counter"
    assert page.helps[f"x_requests{ending}"] == 'How many "requests"\nthere \\were.'
    assert page.kinds["x_build" if openmetrics else "x_build_info"] == ("info" if openmetrics else "gauge")
    assert page.value("x_requests_total", **{"class": "a"}) == 3
    assert page.value("x_requests_total") == 4
    assert page.value("x_heat") == -1.5
    assert page.value("x_build_info", version="1") == 1


def test_a_bucket_counts_all_below_it():
    page = scrape(render(FAMILIES, openmetrics=False), openmetrics=False)
    buckets = {labels["le"]: value for labels, value in page.samples("x_seconds_bucket")}
    assert buckets == {"0.5": 2, "1.0": 2, "+Inf": 3}
    assert page.value("x_seconds_sum", **{"class": "a"}) == 7.25
    assert page.value("x_seconds_count", **{"class": "a"}) == 3


AWKWARD = st.sampled_from(["\\", '"', "\n", "n", "{", "}", "=", ","])


@example("\\")
@example('\\"\n\\n"')
@given(st.text(AWKWARD | st.characters(codec="utf-8", exclude_characters="\r"), max_size=20))
def test_any_label_comes_back_as_it_was(text):
    family = Family("x", GAUGE, "y", (Sample(1, {"label": text}),))
    page = scrape(render([family], openmetrics=True), openmetrics=True)
    assert page.value("x", label=text) == 1


@given(st.one_of(st.integers(-(2**53), 2**53), st.floats()))
def test_any_number_comes_back_as_it_was(number):
    page = scrape(render([Family("x", GAUGE, "y", (Sample(number),))], openmetrics=False), openmetrics=False)
    found = page.value("x")
    assert found == number or (math.isnan(found) and math.isnan(number))
