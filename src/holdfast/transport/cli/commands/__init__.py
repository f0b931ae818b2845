"""Implementations of the command line verbs, imported only when their verb runs."""
