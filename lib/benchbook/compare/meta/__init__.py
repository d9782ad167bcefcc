"""meta: see the README of the code."""
