"""Routes compatible with Orchestrion V1."""
