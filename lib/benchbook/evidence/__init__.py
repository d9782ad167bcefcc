"""A session as evidence: its archive, checks of it, and its results, recomputed in one place."""
