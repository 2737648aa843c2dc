"""Imports: the modules that each command or package loads, observed in fresh processes."""

import ast
import pkgutil
import re
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path

import grimp
import pytest

import mixup_core

ROOT = Path(__file__).parents[2]
PACKAGES = ("mixup_core", "sweeps", "reports", "mixsweep")
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


def test_no_module_takes_part_in_an_import_cycle() -> None:
    """Imports inside functions count, and so do imports for type checkers only."""
    graph = grimp.build_graph(*PACKAGES, cache_dir=None)
    assert "mixup_core.images.training" in graph.modules
    imported = {name: graph.find_modules_directly_imported_by(name) for name in graph.modules}
    TopologicalSorter(imported).prepare()  # which raises an error that names a circle


def test_no_source_file_is_longer_than_400_lines() -> None:
    files = [file for package in PACKAGES for file in (ROOT / package).rglob("*.py")]
    sizes = {str(file.relative_to(ROOT)): len(file.read_text().splitlines()) for file in files}
    assert {name: size for name, size in sizes.items() if size > 400} == {}


def _private_parts(code: str) -> Iterator[str]:
    """Yield each private part of another package that code imports, names or passes."""
    names = set()
    for node in ast.walk(ast.parse(code)):
        modules = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
        if isinstance(node, ast.Import | ast.ImportFrom):
            modules = modules or [alias.name for alias in node.names]
            if {module.partition(".")[0] for module in modules} & {*PACKAGES, ""}:
                continue
            names |= {alias.asname or alias.name.partition(".")[0] for alias in node.names}
            imported = [f"{modules[0]}.{alias.name}" for alias in node.names]
            yield from (path for path in imported if "._" in path)
        elif isinstance(node, ast.Call):
            yield from (k.arg for k in node.keywords if k.arg and k.arg.startswith("_"))
    if names:  # in annotations that are texts, too
        pattern = rf"\b(?:{'|'.join(map(re.escape, names))})(?:\.\w+)*\._[a-z]\w*"
        yield from re.findall(pattern, code)


@pytest.mark.parametrize(
    "code",
    [
        "from ray._private import worker",
        "import ray._private.worker",
        "import ray\nray._private.worker.node",
        'import functools\nx: "functools._lru_cache_wrapper[int]"',
        "connect(_folder=1)",
    ],
)
def test_a_private_part_of_another_package_is_found(code: str) -> None:
    assert list(_private_parts(code))


def test_private_parts_of_other_packages_are_used_only_with_a_stated_reason() -> None:
    """Python documents `os._exit` and `sys._current_frames`, and Ray its option `_temp_dir`."""
    files = [file for package in PACKAGES for file in (ROOT / package).rglob("*.py")]
    found = {part for file in files for part in _private_parts(file.read_text())}
    assert found == {"os._exit", "sys._current_frames", "_temp_dir"}


def test_sql_is_only_in_the_two_modules_that_state_a_reason() -> None:
    """`docs/explanation/dependencies.md` lists every use of it beside MLflow's client."""
    files = [file for package in PACKAGES for file in (ROOT / package).rglob("*.py")]
    found = {str(f.relative_to(ROOT)) for f in files if "sqlite3" in f.read_text()}
    assert found == {"sweeps/machine/sqlite_files.py", "sweeps/tracking/database.py"}


@pytest.mark.parametrize(
    "module",
    [
        "mixup_core.images.config",
        "mixup_core.laws",
        "mixup_core.store.checkpoints",
        "mixsweep.cli.main",
    ],
)
def test_importing_configs_laws_store_and_cli_loads_no_heavy_package(module: str) -> None:
    assert _loaded_by(f"import {module}") == set()


def test_importing_the_run_command_loads_ray_and_no_other_heavy_package() -> None:
    """PyTorch is imported by the workers, MLflow by the tracker, Optuna by searches."""
    program = "import mixsweep.cli.run, sweeps.running.launch, sweeps.tracking.projection"
    assert _loaded_by(program) == {"ray"}


def test_running_plan_and_status_loads_no_heavy_package(tmp_path: Path) -> None:
    program = f"""
    from contextlib import redirect_stdout
    from mixsweep.cli.main import commands
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
