"""Runs the commands of many callers in one transaction, and answers them only after its commit."""
