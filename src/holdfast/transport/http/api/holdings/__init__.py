"""Lists of what a session or a key holds."""
