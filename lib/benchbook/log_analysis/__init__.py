"""Logs of sysbench that exist already: runs, who is who, comparison, and what could be wrong."""
