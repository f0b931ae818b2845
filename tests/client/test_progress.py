"""Progress that holders send: the forms that are understood, and that what the client sends is one of them."""

import json

import pytest

from holdfast.operations.bounds import PROGRESS
from holdfast.operations.progress import MESSAGE_LENGTH, Progress, progress_document, read_progress

UNKNOWN = [
    None, True, 1.01, -0.1, 40, [], {}, [0.5], {"percent": 101}, {"percent": None}, {"percent": True}, {"done": 1},
    {"done": 9, "of": 8}, {"done": 0, "of": 0}, {"done": -1, "of": 8}, {"message": 3}, {"at": "page 3"},
]  # fmt: skip


@pytest.mark.parametrize(
    ("sent", "understood"),
    [
        (0, Progress(0)),
        (0.4, Progress(40)),
        (1, Progress(100)),
        ({"percent": 40}, Progress(40)),
        ({"percent": 99.6, "message": "last page"}, Progress(100, "last page")),
        ({"done": 3, "of": 8}, Progress(38)),
        ({"done": 0, "of": 8, "message": "begins"}, Progress(0, "begins")),
        ({"percent": "many", "done": 1, "of": 2}, Progress(50)),
        ({"message": "reads"}, Progress(message="reads")),
        ("almost", Progress(message="almost")),
        *((unknown, None) for unknown in UNKNOWN),
    ],
    ids=str,
)
def test_progress_is_read_from_the_known_forms(sent, understood):
    assert read_progress(json.dumps(sent)) == understood


@pytest.mark.parametrize("text", [None, "", "{", "1e999", '{"percent": 1e999}'])
def test_progress_that_cannot_be_read_is_none(text):
    assert read_progress(text) is None


@pytest.mark.parametrize("fraction", [0, 0.004, 0.4, sum([0.1] * 10), 1.0000001])
def test_what_a_client_sends_is_read_back(fraction):
    for message in (None, "page 3"):
        sent = progress_document(fraction, message)
        assert read_progress(json.dumps(sent)) == Progress(round(fraction * 100), message)


def test_a_long_message_is_cut_to_what_the_server_accepts():
    document = progress_document(1, "\0\x01" * 1_000)
    assert document["message"] == "\x01" * MESSAGE_LENGTH
    assert len(json.dumps(document)) <= PROGRESS.size
