"""How one batch of commands runs: its transaction, its changes, its locked rows, its metrics."""
