"""Ten agents edit one repository of 10,000 files. Each reserves patterns before it writes; no two touch the same file.

Starts a server of its own. Needs no client library: the agents talk plain HTTP. Arguments: how many files, how many
rounds for each agent.
"""

import json
import multiprocessing
import os
import random
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from fnmatch import fnmatchcase
from pathlib import Path

AGENTS, FILES, ROUNDS = 10, 10_000, 12
FOLDERS, SUBFOLDERS = 10, 10
KEY = "the-key-of-the-ten-agents-0123456789"


def call(port, path, **body):
    request = urllib.request.Request(f"http://127.0.0.1:{port}{path}", json.dumps(body).encode())
    request.add_header("Authorization", f"Bearer {KEY}")
    request.add_header("Content-Type", "application/json")
    with urllib.request.urlopen(request, timeout=100) as answer:
        return json.load(answer)


def start_server(folder):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    command = [sys.executable, "-m", "holdfast", "serve", "--port", str(port), "--store", f"sqlite:///{folder}/x.db"]
    variables = os.environ | {"HOLDFAST_ROOT_KEY": KEY, "XDG_CONFIG_HOME": folder}
    server = subprocess.Popen(command, env=variables, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    for _ in range(1_000):
        try:
            urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=5)
        except (urllib.error.URLError, ConnectionError):
            time.sleep(0.05)
        else:
            break
    return server, port


def name_of(number):
    return f"src/part{number % FOLDERS}/unit{number // FOLDERS % SUBFOLDERS}/file{number}.py"


def some_patterns(dice, files):
    """Files, folders and wildcards, so that agents often want the same ones."""
    part, unit = dice.randrange(FOLDERS), dice.randrange(SUBFOLDERS)
    kinds = [
        name_of(dice.randrange(files)),
        f"src/part{part}/unit{unit}/",
        f"src/part{part}/unit{unit}/*{dice.randrange(10)}.py",
        f"src/**/file{dice.randrange(100)}*.py",
        f"src/part{part}/*/file*{dice.randrange(10)}?.py",
    ]
    return dice.sample(kinds, dice.randrange(1, 4))


def matches(pattern, path):
    """Whether a pattern of the kinds above matches a path; `*` never matches a slash."""
    if pattern.endswith("/"):
        return path.startswith(pattern)
    if "**" in pattern:
        return fnmatchcase(path.rpartition("/")[2], pattern.rpartition("/")[2])
    pieces, names = pattern.split("/"), path.split("/")
    return len(pieces) == len(names) and all(map(fnmatchcase, names, pieces))


def write(path, owner):
    """Write a file, slowly. Returns whether another agent had it open: each makes a second file while it writes."""
    marker = path.with_suffix(".open")
    try:
        marker.touch(exist_ok=False)
    except FileExistsError:
        return True
    with path.open("a") as file:
        file.write(f"{owner}\n")
    time.sleep(0.0005)
    marker.unlink()
    return False


def agent(number, port, root, size, results):
    (files, rounds), dice, owner = size, random.Random(number), f"agent-{number}"
    paths = [name_of(each) for each in range(files)]
    waited = written = clashes = 0
    for _ in range(rounds):
        wanted = {"space": "acme/shop", "owner": owner, "paths": some_patterns(dice, files), "reason": "refactoring"}
        answer = call(port, "/v1/reservations", **wanted)
        if answer["status"] == "held":
            waited += 1
            while answer["status"] == "held":  # `waiting_id` keeps our place between two requests
                place = {"waiting_id": answer["waiting_id"]} if "waiting_id" in answer else {}
                answer = call(port, "/v1/reservations", **wanted, wait_seconds=30, **place)
        mine = [path for path in paths if any(matches(pattern, path) for pattern in wanted["paths"])]
        for path in dice.sample(mine, min(len(mine), 25)):
            clashes += write(root / path, owner)
            written += 1
        call(port, f"/v1/reservations/{answer['reservation_id']}/release", lease_id=answer["lease_id"])
    results.put((waited, written, clashes))


def main(files=FILES, rounds=ROUNDS):
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder, "repository")
        for number in range(files):
            path = root / name_of(number)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.touch()
        server, port = start_server(folder)
        try:
            results = multiprocessing.Queue()
            agents = [
                multiprocessing.Process(target=agent, args=(number, port, root, (files, rounds), results))
                for number in range(AGENTS)
            ]
            for process in agents:
                process.start()
            waited, written, clashes = map(sum, zip(*[results.get(timeout=300) for _ in agents], strict=True))
            for process in agents:
                process.join()
        finally:
            server.terminate()
            server.wait()
    print(f"{AGENTS} agents made {AGENTS * rounds} reservations in {files:,} files; {waited} had to wait")
    print(f"{written} files were written; {clashes} were open in two agents at once")
    return 1 if clashes else 0


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:])))
