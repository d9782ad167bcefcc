"""This machine as a site: namespaces, control groups, relays, neighbours, and servers in them."""
