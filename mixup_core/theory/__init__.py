"""Synthetic settings of papers on mixup, as problems that studies can run, with exact values."""
