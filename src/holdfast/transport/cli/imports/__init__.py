"""Verbs `import octostore` and `import tasks`."""
