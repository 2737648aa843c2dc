"""Imports: the modules that each command or package loads, observed in fresh processes."""

import pkgutil
import subprocess
import sys
import textwrap
from graphlib import TopologicalSorter
from pathlib import Path

import grimp
import pytest

import mixup_core

ROOT = Path(__file__).parents[2]
HEAVY = ("torch", "ray", "mlflow", "optuna", "pandas")


def _loaded_by(program: str) -> set[str]:
    shown = f"{program}\nimport sys\nprint(*(m for m in {HEAVY!r} if m in sys.modules))"
    ran = subprocess.run(
        [sys.executable, "-c", shown], capture_output=True, text=True, check=True, cwd=ROOT
    )
    return set(ran.stdout.split())


def test_the_core_loads_neither_ray_nor_mlflow_nor_pandas() -> None:
    modules = [name for _, name, _ in pkgutil.walk_packages(mixup_core.__path__, "mixup_core.")]
    assert {"mixup_core.laws", "mixup_core.images.data.datasets"} <= set(modules)
    assert _loaded_by("\n".join(f"import {name}" for name in modules)) == {"torch"}


def test_no_module_takes_part_in_a_runtime_import_cycle() -> None:
    """Imports inside functions count; imports for type checkers only do not."""
    packages = ("mixup_core", "sweeps", "reports", "mixsweep")
    graph = grimp.build_graph(*packages, exclude_type_checking_imports=True, cache_dir=None)
    assert "mixup_core.images.training" in graph.modules
    imported = {name: graph.find_modules_directly_imported_by(name) for name in graph.modules}
    TopologicalSorter(imported).prepare()  # which raises an error that names a circle


@pytest.mark.parametrize(
    "module",
    ["mixup_core.images.config", "mixup_core.laws", "mixup_core.store.checkpoints", "sweeps.cli"],
)
def test_importing_configs_laws_store_and_cli_loads_no_heavy_package(module: str) -> None:
    assert _loaded_by(f"import {module}") == set()


def test_importing_the_run_command_loads_ray_and_no_other_heavy_package() -> None:
    """PyTorch is imported by the workers, MLflow by the tracker, Optuna by searches."""
    program = "import sweeps.commands.run, sweeps.running.launch, sweeps.tracking.projection"
    assert _loaded_by(program) == {"ray"}


def test_running_plan_and_status_loads_no_heavy_package(tmp_path: Path) -> None:
    program = f"""
    from contextlib import redirect_stdout
    from sweeps.cli import commands
    import io
    for verb in ("plan", "status"):
        with redirect_stdout(io.StringIO()):
            arguments = [verb, "quickstart", "--json", "--home", {str(tmp_path / "runs")!r}]
            commands.main(arguments, standalone_mode=False)
    """
    assert _loaded_by(textwrap.dedent(program)) == set()
    assert not (tmp_path / "runs").exists()


def test_the_core_trains_a_run_in_ten_lines(tmp_path: Path) -> None:
    """Runs the script of the documentation, which needs neither study file nor Ray."""
    page = (ROOT / "docs" / "reference" / "python-api.md").read_text()
    core = page.partition("## Training without a sweep")[2]
    script = core.split("```python\n")[1].split("```")[0]
    assert len(script.strip().splitlines()) <= 12
    script = script.replace("fashion-mnist", "digits")
    ran = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, cwd=ROOT
    )
    assert len(ran.stdout.splitlines()) == 10


def test_reading_a_study_with_mixsweep_loads_no_heavy_package() -> None:
    assert _loaded_by("import mixsweep; mixsweep.read_study('digits')") == set()
