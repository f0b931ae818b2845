"""Metrics, logs and traces. Knows nothing of leases, tasks or transports."""
