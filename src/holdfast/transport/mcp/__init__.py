"""Model Context Protocol: the main operations as tools, over HTTP at `/mcp` and over stdio.

A tool call becomes a request to the HTTP handler of its operation, so keys, limits, contracts and errors are
the same as over HTTP. The protocol itself is the official SDK's business; it is imported when somebody first speaks it.
"""
