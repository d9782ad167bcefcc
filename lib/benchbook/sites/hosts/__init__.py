"""Hosts that you name in an inventory, over SSH: what is done there is done by our agent on each of them."""
