"""Published documents: sources, their table cells, their claims, and audits."""
