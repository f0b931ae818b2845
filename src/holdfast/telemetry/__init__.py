"""What the house tells of itself: numbers, lines and traces. It knows nothing of leases, tasks or doors."""
