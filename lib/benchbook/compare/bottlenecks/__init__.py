"""Utilization and service demand of each part, operational laws, and the explanation of an effect."""
