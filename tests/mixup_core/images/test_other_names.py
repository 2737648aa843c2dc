"""Other names: each stands for an existing field, and none is the name of a field itself."""

from pathlib import Path

import pytest

from mixup_core.images.problem import OTHER_NAMES
from mixup_core.problem import problem_named
from sweeps.reading.study_file import StudyError
from sweeps.reading.study_keys import StudyKeys
from sweeps.reading.tree_paths import TreePaths, config_paths
from tests.sweeps.reading.study_files import SMALL, read


def test_every_alternative_name_maps_to_an_existing_field() -> None:
    paths = config_paths(problem_named("images"))
    assert set(OTHER_NAMES.values()) <= {*paths.leaves, *TreePaths(StudyKeys).leaves}


@pytest.mark.parametrize(
    ("path", "meant"),
    [
        ("label_smoothing", "loss.smoothing"),
        ("data.path", "data.folder"),
        ("early_stopping", "readout"),
    ],
)
def test_an_alternative_name_is_refused_with_the_key_that_is_meant(
    path: str, meant: str, tmp_path: Path
) -> None:
    group, _, key = path.rpartition(".")
    entry = f"{group}: {{{key}: 1}}" if group else f"{key}: 1"
    in_base = SMALL.replace("base: {", f"base: {{{entry}, ")
    for text in (in_base, SMALL + f"grid: {{{path}: [1, 2]}}\n"):
        with pytest.raises(StudyError, match=f"did you mean {meant}[?]"):
            read(tmp_path, text)
