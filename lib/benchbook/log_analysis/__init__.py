"""Existing logs of sysbench: runs, their roles, comparison, and caveats."""
