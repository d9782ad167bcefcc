"""Descriptors of the engines and proxies that come with us: a module each, read every start."""
