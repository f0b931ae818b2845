"""Rules of `holdfast import octostore` and `import tasks`: which rows are made from the records of another server."""
