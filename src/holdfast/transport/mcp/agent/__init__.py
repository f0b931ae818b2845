"""A process that is one agent: its session, its lease ids, and the tool calls that they complete."""
