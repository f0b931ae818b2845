"""Front processes: they accept, authenticate, parse and render; one engine process runs the commands of all of them.

On SQLite one process must own the writes, and one process uses one processor core. With fronts the engine has a core
for batches, and HTTP has the others. A front runs the handlers of frequent operations and sends their commands to the
engine over a local socket (`lanes.py`). It forwards every other request, as it came, to the engine's own HTTP server
(`forwarding.py`): waiting callers, streams, the dashboard and idempotent repeats exist in one process only.
"""
