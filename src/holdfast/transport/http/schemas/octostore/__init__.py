"""Schemas of the routes that are compatible with OctoStore."""
