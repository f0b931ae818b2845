"""Webhooks on their way out: what is told, to whom, over which network."""
