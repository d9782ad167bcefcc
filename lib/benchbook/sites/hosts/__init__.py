"""Hosts that you name in an inventory, over SSH: all work there is done by our agents."""
