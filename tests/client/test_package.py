"""Public names of `import holdfast`."""

import subprocess
import sys

import holdfast


def test_dir_lists_the_public_names_and_nothing_else():
    assert dir(holdfast) == sorted(holdfast.__all__)


def test_dir_is_the_same_before_and_after_a_name_is_used():
    program = "import holdfast; before = dir(holdfast); holdfast.Client; print(before == dir(holdfast))"
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert result.stdout == "True\n"
