"""Translates. Doors parse, submit one command, and render; they decide nothing."""
