"""Who may send requests: authentication, network rules, rate limits, and the access log."""
