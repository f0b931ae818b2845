"""The table of planted faults is up to date with the source, the tests and the promises. It plants none of them.

`make prove-the-proofs` plants each fault and shows that its tests fail.
"""

import ast
from collections import defaultdict

import pytest

from tests.planted.fault import ROOT, SOURCE, Fault, Outdated, all_faults, promised_tests, read_faults

TESTS = ROOT / "tests"
FAULTS = all_faults()


def functions_of_tests():
    """By the name of a test: every `folder/file.py::function` that has it."""
    found = defaultdict(set)
    for path in TESTS.rglob("test_*.py"):
        for line in path.read_text().splitlines():
            if line.startswith("def test_"):
                name = line.removeprefix("def ").partition("(")[0]
                found[name].add(f"{path.relative_to(TESTS)}::{name}")
    return found


def test_every_fault_replaces_lines_that_are_in_its_file_once():
    for fault in FAULTS:
        planted = fault.edit((ROOT / SOURCE / fault.file).read_text())
        if fault.file.endswith(".py"):
            ast.parse(planted, fault.file)


def test_lines_that_are_not_in_the_file_once_are_refused():
    fault = Fault("P1", "x", "x.diff", old="old\n", new="new\n")
    assert fault.edit("first\nold\nlast\n") == "first\nnew\nlast\n"
    for text in ("", "older\n", "very old\n", "old\nold\n"):
        with pytest.raises(Outdated, match=r"x\.diff"):
            fault.edit(text)


def test_a_fault_is_read_like_a_hunk_of_a_diff(tmp_path):
    path = tmp_path / "x.diff"
    path.write_text("# comment\n\nP4: broken\nfile: a.py\n one\n-two\n+three\ntest: t.py::t\nruns: 2\n")
    (fault,) = read_faults(path)
    assert fault == Fault("P4", "broken", "x.diff", "a.py", ["t.py::t"], 2, old="one\ntwo\n", new="one\nthree\n")
    path.write_text("P4: broken\nfiel: a.py\n")
    with pytest.raises(ValueError, match=r"x\.diff:2: .* fiel: a\.py"):
        list(read_faults(path))


def test_every_test_of_a_fault_exists():
    known = functions_of_tests()
    for fault in FAULTS:
        assert fault.tests, fault.breaks
        for test in fault.tests:
            assert test in known[test.partition("::")[2]], test


def test_every_test_that_proves_a_promise_has_a_fault_that_it_must_find():
    known = functions_of_tests()
    covered = {(fault.promise, test) for fault in FAULTS for test in fault.tests}
    missing = {
        (promise, test)
        for promise, names in promised_tests().items()
        for name in names
        for test in known[name]
        if (promise, test) not in covered
    }
    assert not missing
