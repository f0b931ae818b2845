"""Lists that are read up to a limit, then sorted and divided into pages."""
