"""Blocks and their order, and the number of further blocks needed."""
