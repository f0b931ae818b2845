"""The HTTP API as a plain ASGI application. Two older APIs that it is compatible with rule out web frameworks."""
