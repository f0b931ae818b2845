"""Leases as the client holds them: claiming, renewing in the background, and knowing until when they are valid."""
