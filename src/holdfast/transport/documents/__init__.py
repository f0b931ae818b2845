"""What an agent reads that knows only an address: made from the table of operations and the running settings."""
