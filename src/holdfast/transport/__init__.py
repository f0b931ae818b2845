"""HTTP, MCP, command line, dashboard and webhooks: parse a request, submit one command, render its outcome."""
