"""The rules of the system, as pure functions over frozen data: no clock, no randomness, no I/O."""
