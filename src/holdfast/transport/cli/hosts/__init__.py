"""Hosts: the programs that run coding agents, and the files by which they are configured."""
