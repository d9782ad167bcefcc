"""Contrasts to findings: decisions, caveats, ordered arms, stopping, and exported metrics."""
