"""Whole stores on the move: into a backup, back from one, from one database to another."""
