"""Datasets: their sizes and classes, files, download and reading."""
