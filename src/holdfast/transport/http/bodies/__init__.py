"""Request bodies and query strings: parsing, validation, idempotency."""
