"""What the project costs, each cost as a ratio against a named alternative in the same run."""
