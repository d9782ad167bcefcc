"""What we run on other hosts, packed by `hosts.agent_zipapp`: the library of Python 3.9 is all it needs."""
