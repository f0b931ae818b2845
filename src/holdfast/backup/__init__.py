"""Copies of whole stores: backup, restore, and migration from one database to another."""
