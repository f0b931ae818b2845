"""Queues of callers that wait for a name, a task or files."""
