"""Datasets: facts, files, download and reading."""
