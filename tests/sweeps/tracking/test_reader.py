from pathlib import Path

import pytest

from sweeps.home import Home
from sweeps.tracking.reader import parse_param, read_runs


@pytest.mark.parametrize("value", [0.1, 1e-300, 3, True, "adam", "03af", (300, 100)])
def test_a_param_comes_back_as_the_value_it_was(value: object) -> None:
    assert parse_param(str(value)) == value
    assert type(parse_param(str(value))) is type(value)


def test_reading_does_not_make_a_database(tmp_path: Path) -> None:
    with pytest.raises(LookupError, match="the study is tracked"):
        read_runs(Home(folder=tmp_path).tracking_uri, "table1")
    assert list(tmp_path.iterdir()) == []
