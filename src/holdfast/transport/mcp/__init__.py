"""Model Context Protocol: the main operations as tools, over HTTP at `/mcp` and over stdio.

A tool call becomes a request to the HTTP handler of its operation, so keys, limits, advice and errors are
the same as over HTTP. The official SDK handles the protocol; it is imported on the first request.
"""
