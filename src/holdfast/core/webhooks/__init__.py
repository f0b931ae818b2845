"""Rules of webhooks: what they receive, where they may point, how deliveries are retried and signed."""
