"""The HTTP door, as plain ASGI: the wire rules of two older APIs leave a router of our own little to add."""
