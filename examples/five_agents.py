"""Five agents see the same issue. One owns it; when its process is killed, another continues with its note.

Needs no server: the agents share an SQLite file. With HOLDFAST_URL and HOLDFAST_API_KEY they share a server.
"""

import multiprocessing
import multiprocessing.connection
import os
import signal
import sys
import tempfile
import time

import holdfast

ISSUE = "github-issue-1842"


def has_server():
    return bool(os.environ.get("HOLDFAST_API_KEY"))


def connect(path):
    return holdfast.Client() if has_server() else holdfast.open(path)


def agent(name, issue, path, messages):
    with connect(path) as client, client.job(issue, owner=name, ttl=5, wait=60) as job:
        if job.previous:
            messages.send((name, job.previous["owner"], job.previous["note"]))
            return
        job.note = "the failing test is test_login; start there"
        job.checkpoint({"branch": "fix-1842"})
        messages.send((name, job.token, os.getpid()))
        time.sleep(60)  # works until it is killed


def receive(readers):
    return multiprocessing.connection.wait(readers, timeout=60)[0].recv()


def main():
    issue = f"{ISSUE}-{os.getpid()}" if has_server() else ISSUE  # a server remembers the owners of an earlier run
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "agents.db")
        # One pipe for each agent: agents that share a queue would share its lock, which a killed agent may hold.
        pipes = [multiprocessing.Pipe(duplex=False) for _ in range(5)]
        agents = [
            multiprocessing.Process(target=agent, args=(f"agent-{number}", issue, path, sender))
            for number, (_, sender) in enumerate(pipes, 1)
        ]
        for process in agents:
            process.start()
        readers = [reader for reader, _ in pipes]
        winner, token, pid = receive(readers)
        print(f"{winner} owns {issue}, with token {token}; four others wait")
        os.kill(pid, signal.SIGKILL)
        print(f"{winner} is killed")
        successor, previous_owner, note = receive(readers)
        print(f"{successor} continues after {previous_owner}: {note}")
        for process in agents:
            process.kill()
            process.join()
    return 0 if successor != winner == previous_owner else 1


if __name__ == "__main__":
    sys.exit(main())
