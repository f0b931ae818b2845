"""Three deployments of one service, started together, run one after the other."""

import os
import tempfile
import threading
import time

import holdfast


def deploy(client, build):
    with client.job("deploy/web", owner=build, wait=30) as job:
        print(f"{build} begins, token {job.token}")
        time.sleep(0.2)  # push; the target refuses smaller tokens
        job.check()  # raises LeaseLost if the job may no longer be ours
        print(f"{build} is live")


def main():
    with tempfile.TemporaryDirectory() as folder, holdfast.open(os.path.join(folder, "deploys.db")) as client:
        builds = [threading.Thread(target=deploy, args=(client, f"build-{n}")) for n in (41, 42, 43)]
        for build in builds:
            build.start()
        for build in builds:
            build.join()


if __name__ == "__main__":
    main()
