"""Routes compatible with OctoStore 0.14."""
