"""artifacts: see the README of the code."""
