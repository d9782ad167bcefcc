"""text: see the README of the code."""
