"""Load the data, warm up, run sysbench, and keep its output."""
