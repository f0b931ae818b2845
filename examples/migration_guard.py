"""Four servers start together on a database that needs a migration. One migrates it, the others wait for that."""

import os
import pathlib
import tempfile
import threading
import time

import holdfast


def start(client, server, schema):
    with client.job("migrate/orders-db", owner=server, wait=30) as job:
        if not schema.exists():
            print("one server migrates the database")
            time.sleep(0.2)
            job.check()
            schema.write_text("2")
        else:
            print("another server finds it migrated")


def main():
    with tempfile.TemporaryDirectory() as folder, holdfast.open(os.path.join(folder, "servers.db")) as client:
        schema = pathlib.Path(folder, "schema_version")
        servers = [threading.Thread(target=start, args=(client, f"web-{n}", schema)) for n in range(1, 5)]
        for server in servers:
            server.start()
        for server in servers:
            server.join()


if __name__ == "__main__":
    main()
