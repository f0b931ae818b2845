"""Server-sent event streams."""
