"""Hooks of coding agents, and the check of files that they ask for. They import little, to start quickly."""
