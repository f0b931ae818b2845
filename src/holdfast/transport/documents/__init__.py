"""Documents for agents that know only the server's URL, generated from the table of operations and the settings."""
