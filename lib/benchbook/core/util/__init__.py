"""util: see the README of the code."""
