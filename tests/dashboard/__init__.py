"""A package for pytest, so that its browser (scope "package") ends with the last test of this folder."""
