"""Rules over everything that can be held: jobs, locks, reservations, tasks and sessions."""
