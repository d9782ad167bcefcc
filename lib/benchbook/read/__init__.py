"""From text to tidy tables: pure functions over what runs and documents left behind."""
