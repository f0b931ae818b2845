"""Webhook delivery: reads the event log, builds messages and sends them."""
