"""The words as frozen types, params and study loading, paths, and the run folder."""
