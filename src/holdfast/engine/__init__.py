"""Runs. Gathers the commands of many callers into one transaction, and answers only after its commit."""
