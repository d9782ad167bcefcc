"""bottlenecks: see the README of the code."""
