"""`/v1/reservations`."""
