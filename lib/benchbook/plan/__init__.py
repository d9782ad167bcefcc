"""Blocks and their order, and how many more blocks are needed."""
