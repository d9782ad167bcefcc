"""Load the data, warm up, run sysbench, and keep what it printed."""
