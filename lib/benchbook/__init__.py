"""Reproducible database benchmarks: study files, six notebooks, one report."""
