"""check: its output and its exit codes."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from tests.conftest import CommandLine
from tests.plugin_files import TINY, Write

Line = Callable[..., CommandLine]


@pytest.mark.parametrize(
    ("parts", "code", "expected"),
    [
        ((TINY,), 0, "the plugin keeps every rule"),
        ((TINY.replace("nn.GELU(),", "nn.Dropout(0.5),"),), 1, "1 broken rule"),
        pytest.param(
            (TINY, "import torch\n"),
            0,
            "advice  import torch inside functions",
            marks=pytest.mark.long,
        ),
        (("1 / 0",), 2, ""),
    ],
)
def test_the_exit_code_of_check_shows_whether_contracts_hold(
    command_line: Line,
    plugin: Write,
    parts: tuple[str, ...],
    code: int,
    expected: str,
) -> None:
    # A fork has imported torch before: whether the plugin does is seen by an interpreter alone.
    mixsweep = replace(command_line(), server=None) if "advice" in expected else command_line()
    told = mixsweep("check", str(plugin(*parts)), code=code)
    assert expected in told.stdout
    assert ("fails in line 9: ZeroDivisionError" in told.stderr) == (code == 2)
