"""What we run on other hosts: one file of the standard library alone, made from these modules.

`ssh.archive` packs them, with the few modules of the house that need nothing but Python, into a zip archive
that Python runs as it is. Python 3.9 or newer is all that a host needs for it.
"""
