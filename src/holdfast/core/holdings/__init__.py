"""Rules over everything that can be held: jobs, locks, tasks and sessions."""
