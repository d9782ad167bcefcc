"""The part of Benchbook that runs on other hosts: one file made from these modules."""
