"""published: see the README of the code."""
