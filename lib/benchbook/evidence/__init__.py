"""A session as evidence: its archive, what it proves, and what follows from it, made again in one place."""
