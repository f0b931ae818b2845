"""What the stores on SQLite and on PostgreSQL share: reads, housekeeping, deliveries, and their statements."""
