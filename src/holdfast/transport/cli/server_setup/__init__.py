"""What `serve` and `doctor` set up for a store: its first key, the key of this machine, its clock."""
