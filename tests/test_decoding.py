"""Types are described once, whichever thread uses them first."""

import subprocess
import sys

PROGRAM = """
import sys, threading
from typing import Annotated, Optional
import msgspec
from holdfast.decoding import convert, decode

sys.setswitchinterval(1e-6)
VALUES = {f"column{number}": number for number in range(20)}
TEXT = msgspec.json.encode(VALUES)
COLUMNS = [(name, Annotated[Optional[int], msgspec.Meta(description="")], None) for name in VALUES]
READERS = (lambda of: decode(TEXT, of), lambda of: convert(VALUES, of))

def use_at_once(of):
    ready = threading.Barrier(4)
    def use(read):
        ready.wait()
        assert read(of).column19 == 19
    threads = [threading.Thread(target=use, args=[READERS[number % 2]]) for number in range(4)]
    for thread in threads: thread.start()
    for thread in threads: thread.join()

for number in range(300):
    use_at_once(msgspec.defstruct(f"Row{number}", COLUMNS))
"""


def test_a_type_that_several_threads_use_first_at_once_does_not_end_the_process():
    done = subprocess.run([sys.executable, "-c", PROGRAM], check=False, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert "Error" not in done.stderr
