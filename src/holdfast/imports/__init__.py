"""Reads the files that the verbs `import …` takes: OctoStore's database, and tasks as JSON lines or CSV."""
