"""Tasks in JSON lines and CSV: fields, line numbers, and what is wrong with a line."""

import io

import pytest

from holdfast.imports.task_files import CSV, JSON_LINES, UnreadableTasks, format_of, read_lines
from holdfast.transport.cli.imports.tasks import Report, batches, check_lines


def lines(text, kind):
    return [(line.number, line.fields or line.problem) for line in read_lines(io.StringIO(text, newline=""), kind)]


def test_a_json_line_is_a_task():
    text = '\ufeff{"type": "a"}\n\n  \n{"type": "b", "payload": {"x": 1}}\r\n[1]\n{"type":\n'
    assert lines(text, JSON_LINES)[:3] == [
        (1, {"type": "a"}),
        (4, {"type": "b", "payload": {"x": 1}}),
        (5, "it must be a JSON object with the fields of a task"),
    ]
    number, problem = lines(text, JSON_LINES)[3]
    assert number == 6
    assert problem.startswith("it is not JSON")


def test_a_record_of_csv_is_a_task_and_may_span_lines():
    text = (
        "\ufefftype,priority,payload,payload.title,uniqueKey\r\n"
        'fix,5,"{""n"": 1}","two\nlines",k1\r\n'
        ",,,,\r\n"
        "fix,,,short,\r\n"
        "fix,high,,,\r\n"
        "fix,1,{,,\r\n"
        "fix,1,[],x,\r\n"
        "fix,1\r\n"
    )
    assert lines(text, CSV) == [
        (2, {"type": "fix", "priority": 5, "payload": {"n": 1, "title": "two\nlines"}, "uniqueKey": "k1"}),
        (5, {"type": "fix", "payload": {"title": "short"}}),
        (6, "the column priority must be a whole number"),
        (7, "the column payload must be JSON"),
        (8, "the column payload must be a JSON object"),
        (9, "it has 2 cells, the first line has 5"),
    ]


@pytest.mark.parametrize("text", ["", "type,colour\n", "type,type\n", 'type\n"x" y\n'])
def test_csv_that_cannot_be_read_is_refused_as_a_whole(text):
    with pytest.raises(UnreadableTasks, match=r"line [12]"):
        lines(text, CSV)


def test_the_format_follows_the_name():
    assert [format_of(name) for name in ("a.CSV", "a.jsonl", "a.ndjson", "-")] == [CSV, *[JSON_LINES] * 3]


def check(text, default_type=None):
    report = Report("x", dry_run=True)
    return list(check_lines(read_lines(io.StringIO(text), JSON_LINES), default_type, report)), report.refused


def test_lines_are_checked_by_the_rules_of_the_server():
    good, refused = check(
        '{"type": "a"}\n{"payload": {}}\n{"type": "a", "priority": 10000, "tag": 3}\n{"type": "a", "colour": 1}\n'
        '{"type": "a b", "payload": []}\n{"type": "a", "scheduledAt": "soon"}\n'
    )
    assert good == [(1, {"op": "create", "payload": {}, "type": "a"})]
    assert [refusal["line"] for refusal in refused] == [2, 3, 4, 5, 6]
    messages = [refusal["message"] for refusal in refused]
    assert "type" in messages[0]
    assert "colour" in messages[2]
    assert "`type`" in messages[3]
    assert "`payload`" in messages[3]


def test_a_line_with_a_unique_key_is_the_same_request_each_time():
    line = '{"type": "a", "uniqueKey": "k", "payload": {"n": %d}}\n'
    (first,), (again,), (other,) = (check(line % number)[0] for number in (1, 1, 2))
    assert first == again
    assert first[1]["idempotencyKey"] != other[1]["idempotencyKey"]
    assert "idempotencyKey" not in check('{"type": "a"}')[0][0][1]
    assert check('{"payload": {}}', "default")[0][0][1]["type"] == "default"


def test_batches_have_no_more_than_the_server_takes():
    items = [(number, {"payload": "x" * (2**20 if number < 6 else 1)}) for number in range(1_500)]
    found = list(batches(items))
    assert [line for batch in found for line, _ in batch] == list(range(1_500))
    assert [len(batch) for batch in found] == [3, 1_000, 497]
