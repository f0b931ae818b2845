"""Health, metrics, discovery documents and API documentation."""
