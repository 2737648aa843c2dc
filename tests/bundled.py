"""Bundled studies, each read only once per process, because reading all of them takes seconds."""

from functools import cache

from sweeps.reading.study_file import load_study

bundled = cache(load_study)
"""Return the bundled study with a name."""
