"""stats: see the README of the code."""
