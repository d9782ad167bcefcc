"""inference: see the README of the code."""
