"""Benchmarks of image training on a device, compared with a conventional training loop."""
