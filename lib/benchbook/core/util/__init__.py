"""Paths, files, YAML, errors, processes in parallel, and numbers compared by value."""
