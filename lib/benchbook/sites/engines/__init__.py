"""Servers of databases, each written once for this machine and for hosts."""
