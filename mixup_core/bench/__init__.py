"""Benchmarks of image training: its cost on a device, beside a pipeline like that of the papers."""
