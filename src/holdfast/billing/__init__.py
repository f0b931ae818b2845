"""Payments: the provider interface and PayPal. Holdfast trusts only what the provider confirms."""
