"""study: see the README of the code."""
