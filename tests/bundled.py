"""Bundled studies, each read only once per process, because reading all of them takes seconds."""

from collections.abc import Sequence
from functools import cache
from typing import Any

import pytest

from sweeps.reading.study_file import load_study

bundled = cache(load_study)
"""Return the bundled study with a name."""


def few(names: Sequence[str]) -> list[Any]:
    """Return names of studies as parameters; all but every eighth one are marked `long`."""
    return [
        pytest.param(name, marks=[pytest.mark.long] if place % 8 else [])
        for place, name in enumerate(names)
    ]
