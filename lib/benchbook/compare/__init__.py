"""Tidy tables to effects, verdicts, steady states and scaling: pure statistics with their own doubts."""
