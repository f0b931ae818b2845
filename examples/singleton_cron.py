"""The same cron job on three machines: each night one of them does the work."""

import os
import tempfile
import time

import holdfast


def nightly(client, machine, night):
    claim = client.claim_job(f"report/{night}", machine, ttl=3600)
    if claim["status"] == "held":
        print(f"{machine} skips the report: {claim['owner']} writes it")
        return
    print(f"{machine} writes the report")
    # Not released: a machine that starts late, within the hour, finds the job held.


def main():
    with tempfile.TemporaryDirectory() as folder, holdfast.open(os.path.join(folder, "cron.db")) as client:
        night = time.strftime("%Y-%m-%d")
        for machine in ("host-1", "host-2", "host-3"):
            nightly(client, machine, night)


if __name__ == "__main__":
    main()
