"""Bundled studies, each read once per process: reading all of them takes seconds."""

from functools import cache

from sweeps.reading.study_file import load_study

bundled = cache(load_study)
"""Return the bundled study of a name."""
