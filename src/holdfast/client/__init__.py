"""What users import: clients, leases that renew themselves, embedded mode and the worker."""
