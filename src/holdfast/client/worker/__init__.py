"""Worker: claims tasks, runs handlers with a context each, and reports how the tasks ended."""
