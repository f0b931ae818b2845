"""Decides. Rules as pure functions over frozen data: no clock, no randomness, no I/O of its own."""
