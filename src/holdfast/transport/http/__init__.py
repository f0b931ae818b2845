"""The HTTP API, as plain ASGI: two older APIs prescribe rules that web frameworks do not follow."""
