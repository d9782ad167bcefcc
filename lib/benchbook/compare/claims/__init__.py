"""Claims: the quantities that a published sentence is about, and their values in any cells."""
