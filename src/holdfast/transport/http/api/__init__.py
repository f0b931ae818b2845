"""Routes of the Holdfast API under `/v1`."""
