"""Queues of callers that wait for a name or for a task."""
