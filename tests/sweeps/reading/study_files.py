"""Study files as text: read, or refused line by line."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from mixup_core.rules import RuleError
from sweeps.reading.study_file import StudyError, load_study
from sweeps.study.study import Study

SMALL = "study: x\nbase: {model: {name: mlp}, epochs: 4, batch_size: 8}\nseeds: 2\n"
ARMS = SMALL + "arms:\n  erm: {mix.law: erm}\n  uniform: {mix.law: {beta: 1}}\n"

ONE_FILE = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=8)
    | st.sampled_from(["erm", "mix.law", "sgd"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["a", "beta", "mix.law", "lr", "name"]), inner, max_size=3
        )
    ),
    max_leaves=8,
)
"""Random YAML values, limited to those of JSON."""
parts = st.sampled_from(["epochs", "mix", "data", "optimizer", "model", "batch_size", "a"])
"""Keys of a base configuration, and one unknown key."""


def read(folder: Path, text: str | bytes, *overrides: str) -> Study:
    """Return the study of a text."""
    file = folder / "s.yaml"
    file.write_bytes(text.encode() if isinstance(text, str) else text)
    return load_study(str(file), overrides)


def refusals(folder: Path, text: str | bytes, *overrides: str) -> list[str]:
    """Return the faults of a text, each with its line, and those of its overrides."""
    with pytest.raises(StudyError) as caught:
        read(folder, text, *overrides)
    assert str(caught.value).splitlines() == list(caught.value.faults)
    return [line.partition("s.yaml:")[2] or line for line in caught.value.faults]


def faults_of(folder: Path, text: str | bytes, *overrides: str) -> tuple[str, ...]:
    """Return the faults of a text; empty if it is valid."""
    try:
        read(folder, text, *overrides)
    except StudyError as error:
        return error.faults or ("no fault is named",)
    return ()


def broken(make: Callable[..., Any], **values: Any) -> RuleError:
    """Return the rule that some values break."""
    with pytest.raises(RuleError) as caught:
        make(**values)
    return caught.value
