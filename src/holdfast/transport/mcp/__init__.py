"""The Model Context Protocol: a few operations as tools, over HTTP at `/mcp` and over stdio.

A tool call becomes a request to the HTTP handler of its operation, so that keys, limits, contracts and errors are the
same there and here. The protocol itself is the official SDK's business; it is imported when somebody first speaks it.
"""
