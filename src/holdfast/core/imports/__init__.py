"""What becomes of the records of another server: rules for the verbs `import …`."""
