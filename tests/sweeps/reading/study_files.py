"""Study files as text: read, or refused line by line."""

from pathlib import Path

import pytest

from sweeps.reading.study_file import StudyError, load_study
from sweeps.study import Study

SMALL = "study: x\nbase: {model: {name: mlp}, epochs: 4, batch_size: 8}\nseeds: 2\n"
ARMS = SMALL + "arms:\n  erm: {mix.law: erm}\n  uniform: {mix.law: {beta: 1}}\n"


def read(folder: Path, text: str, *overrides: str) -> Study:
    """Return the study of a text."""
    file = folder / "s.yaml"
    file.write_text(text)
    return load_study(str(file), overrides)


def refusals(folder: Path, text: str) -> list[str]:
    """Return the faults of a text, each from its line on."""
    with pytest.raises(StudyError) as caught:
        read(folder, text)
    return [line.partition("s.yaml:")[2] for line in caught.value.faults]
