"""Programs between clients and servers, each written once for this machine and for hosts."""
