"""From text to tidy tables: pure functions over the files that runs and documents left behind."""
