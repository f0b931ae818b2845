"""The command line: results on stdout, talk on stderr."""
