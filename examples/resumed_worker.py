"""A worker is killed during a task. After its restart it resumes its session and continues from the checkpoint."""

import multiprocessing
import os
import signal
import tempfile

import holdfast

PAGES = 6


def work_until_killed(path, secret):
    with holdfast.open(path) as client:
        session = client.begin_session("translator", ttl_seconds=30)
        secret.put(session["secret"])
        claimed = client.claim_task(
            type="translate", session_id=session["session_id"], session_lease_id=session["lease_id"]
        )
        for page in range(1, PAGES + 1):
            client.heartbeat(claimed["id"], lease_id=claimed["leaseId"], checkpoint={"done": page})
            print(f"page {page} is translated", flush=True)
            if page == 3:
                os.kill(os.getpid(), signal.SIGKILL)


def resume(path, secret):
    with holdfast.open(path) as client:
        session = client.begin_session("translator", secret=secret, ttl_seconds=30)
        (task,) = session["tasks"]
        done = task["checkpoint"]["done"]
        print(f"resumed after page {done}, with a new lease", flush=True)
        for page in range(done + 1, PAGES + 1):
            print(f"page {page} is translated", flush=True)
        client.complete_task(task["id"], lease_id=task["leaseId"], result={"pages": PAGES})


def main():
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "work.db")
        with holdfast.open(path) as client:
            created = client.create_task("translate", {"book": "Moby-Dick"})
        secrets = multiprocessing.Queue()
        worker = multiprocessing.Process(target=work_until_killed, args=(path, secrets))
        worker.start()
        secret = secrets.get(timeout=30)
        worker.join()
        print("killed")
        resume(path, secret)
        with holdfast.open(path) as client:
            print(client.check_task_status(created["id"])["status"])


if __name__ == "__main__":
    main()
