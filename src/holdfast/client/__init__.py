"""Python client: sync and async clients, self-renewing leases, embedded mode and the worker."""
