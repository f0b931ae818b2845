"""Roll-ups: the thread of a server that counts the event log for charts."""
