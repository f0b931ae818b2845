"""The HTTP API as a plain ASGI application: web frameworks cannot answer exactly as the two compatible APIs require."""
