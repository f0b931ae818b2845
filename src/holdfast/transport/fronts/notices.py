"""Control messages between a front and the engine process: accept connections, stop accepting, a caller left."""

NOTICE = -2
"""The number of their type; which notice it is stands in place of the number of the request."""
HELLO = 0
"""A front has connected; with the version of its frames."""
ACCEPT = 1
"""Accept connections."""
STOP_ACCEPTING = 2
"""Leave new connections to the engine process, where a lone caller is answered faster."""
CALLER_LEFT = 3
"""The caller of a forwarded request left before it got its answer; with the number of the request."""
