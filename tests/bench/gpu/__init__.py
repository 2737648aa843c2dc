"""Benchmarks of image training on a CPU or GPU, compared with a conventional training loop."""
