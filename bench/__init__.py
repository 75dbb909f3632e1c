"""Benchmarks: ratios to peers, measured in one run on one machine (`make bench`)."""
