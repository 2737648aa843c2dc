"""Imports ahead: what can be imported is, and what cannot ends no process."""

import os
import subprocess
import sys
from pathlib import Path

from sweeps.running.import_ahead import MODULES


def test_a_module_that_fails_is_left_to_the_run_that_needs_it(tmp_path: Path) -> None:
    (tmp_path / "broken.py").write_text("raise OSError('a library is missing')")
    shown = (
        "import sys, sweeps.running.import_ahead; "
        "print([name in sys.modules for name in ('colorsys', 'broken', 'wave')])"
    )
    given = os.environ | {MODULES: "colorsys,broken,absent,wave", "PYTHONPATH": str(tmp_path)}
    said = subprocess.run(
        [sys.executable, "-c", shown], env=given, check=True, capture_output=True, text=True
    )
    assert said.stdout == "[True, False, True]\n"


def test_without_a_variable_nothing_is_imported() -> None:
    given = {name: value for name, value in os.environ.items() if name != MODULES}
    shown = "import sys; import sweeps.running.import_ahead; print('torch' in sys.modules)"
    said = subprocess.run(
        [sys.executable, "-c", shown], env=given, check=True, capture_output=True, text=True
    )
    assert said.stdout == "False\n"
