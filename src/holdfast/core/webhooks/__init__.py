"""Rules of webhooks: which events they receive, which URLs are allowed, how deliveries are retried and signed."""
