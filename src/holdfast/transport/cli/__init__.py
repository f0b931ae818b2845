"""Command line `holdfast`: results on stdout, messages on stderr."""
