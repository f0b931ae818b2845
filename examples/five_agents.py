"""Five agents see the same issue. One owns it; when its process is killed, another continues with its note.

Needs no server: the agents share an SQLite file. With HOLDFAST_URL and HOLDFAST_API_KEY they share a server.
"""

import multiprocessing
import os
import signal
import sys
import tempfile
import time

import holdfast

ISSUE = "github-issue-1842"


def connect(path):
    return holdfast.Client() if os.environ.get("HOLDFAST_API_KEY") else holdfast.open(path)


def agent(name, path, messages):
    with connect(path) as client, client.job(ISSUE, owner=name, ttl=5, wait=60) as job:
        if job.previous:
            messages.put(("goes on", name, job.previous["owner"], job.previous["note"]))
            return
        job.note = "the failing test is test_login; start there"
        job.checkpoint({"branch": "fix-1842"})
        messages.put(("owns", name, job.token, os.getpid()))
        time.sleep(60)  # works until it is killed


def main():
    messages = multiprocessing.Queue()
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "agents.db")
        agents = [multiprocessing.Process(target=agent, args=(f"agent-{n}", path, messages)) for n in range(1, 6)]
        for process in agents:
            process.start()
        _, winner, token, pid = messages.get(timeout=60)
        print(f"{winner} owns {ISSUE}, with token {token}; four others wait")
        os.kill(pid, signal.SIGKILL)
        print(f"{winner} is killed")
        _, successor, before, note = messages.get(timeout=60)
        print(f"{successor} goes on after {before}: {note}")
        for process in agents:
            process.kill()
            process.join()
    return 0 if successor != winner == before else 1


if __name__ == "__main__":
    sys.exit(main())
