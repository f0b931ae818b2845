"""Verbs that hold a lease while a child process runs."""
