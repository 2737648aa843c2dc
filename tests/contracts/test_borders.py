"""Imports: the heavy packages that commands and packages load, observed in fresh processes."""

import pkgutil
from collections.abc import Collection
from pathlib import Path

import pytest

import mixup_core
from tests.interpreters import run_python

ROOT = Path(__file__).parents[2]
HEAVY = ("torch", "ray", "mlflow", "optuna", "pandas")


def _loaded_by(*lines: str, heavy: Collection[str] = HEAVY) -> set[str]:
    shown = f"import sys\nprint(*(m for m in {heavy!r} if m in sys.modules))"
    program = "\n".join((*lines, shown))
    return set(run_python(program, check=True, cwd=ROOT).stdout.splitlines()[-1].split())


def test_the_core_loads_neither_ray_nor_mlflow_nor_pandas() -> None:
    modules = [name for _, name, _ in pkgutil.walk_packages(mixup_core.__path__, "mixup_core.")]
    assert {"mixup_core.laws", "mixup_core.images.data.datasets"} <= set(modules)
    assert _loaded_by(*(f"import {name}" for name in modules)) == {"torch"}


def test_configs_laws_store_plan_and_status_load_no_heavy_package(tmp_path: Path) -> None:
    home = tmp_path / "runs"
    assert (
        _loaded_by(
            "import mixup_core.images.config, mixup_core.laws, mixup_core.store.checkpoints",
            "import mixsweep",
            "mixsweep.read_study('digits')",
            "from mixsweep.cli.main import commands",
            "for verb in ('plan', 'status'):",
            f"    arguments = [verb, 'quickstart', '--json', '--home', {str(home)!r}]",
            "    commands.main(arguments, standalone_mode=False)",
        )
        == set()
    )
    assert not home.exists()


def test_importing_the_run_command_loads_ray_and_no_other_heavy_package() -> None:
    """PyTorch is imported by the workers, MLflow by the tracker, Optuna by searches."""
    program = "import mixsweep.cli.run, sweeps.running.launch, sweeps.tracking.study_log"
    assert _loaded_by(program) == {"ray"}


@pytest.mark.parametrize(
    ("program", "heavy"),
    [
        ("import mixsweep.cli.main", {"numpy", "scipy", "torch", "mlflow"}),
        ("import reports.pages.build", {"torch", "ray", "optuna", "mlflow"}),
        (
            "from mixup_core.problem import PROBLEMS, problem_named\n"
            "[problem_named(n) for n, place in PROBLEMS.items() if '.theory.' in place]",
            {"torch", "scipy", "ray", "optuna", "mlflow"},
        ),
        (
            "from sweeps.reading.study_file import load_study; load_study('search-alpha-switch')",
            {*HEAVY, "numpy", "scipy", "PIL", "pydantic"},
        ),
        ("from sweeps.reading.schema import study_schema; study_schema()", {*HEAVY, "PIL"}),
    ],
)
def test_commands_reports_and_theory_problems_load_no_library_that_they_rarely_need(
    program: str, heavy: set[str]
) -> None:
    assert _loaded_by(program, heavy=heavy) == set()
