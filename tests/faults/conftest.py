"""Fault tests run in namespaces (`make faults`) and share their undisturbed studies."""

import shutil
import subprocess
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import pytest

from tests.conftest import CommandLine, CommandLines
from tests.faults.launches import TWO_LAWS, Task
from tests.faults.namespaces import is_in_namespace
from tests.faults.nodes import Nodes


@pytest.fixture(scope="session", autouse=True)
def namespace() -> None:
    """Fail unless the test runs in namespaces, whose processes and mounts end with the tests."""
    if not is_in_namespace():
        pytest.skip("faults are caused in namespaces of their own only: make faults")


@pytest.fixture(scope="session")
def command_server() -> None:
    """Run each command in its own process; no process of the tests is forked."""


@pytest.fixture(scope="session")
def interposed(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return the preloaded library that stands between processes and the C library."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        pytest.skip("NOT CHECKED: no C compiler on this machine")
    library = tmp_path_factory.mktemp("interposed") / "interposed.so"
    source = Path(__file__).with_name("interposed.c")
    flags = ("-shared", "-fPIC", "-O1", "-Wall", "-Wextra", "-Werror")
    subprocess.run([compiler, *flags, "-o", library, source], check=True)
    return str(library)


@pytest.fixture(scope="session")
def run_undisturbed(command_line: CommandLines) -> Callable[[Task], CommandLine]:
    """Return a function that runs a study without any fault, once, and returns its home."""

    @cache
    def run(task: Task) -> CommandLine:
        mixsweep = command_line()
        mixsweep("run", *task.arguments, "--slots", "2", "--keep-final-states")
        return mixsweep

    return run


@pytest.fixture(scope="session")
def undisturbed(run_undisturbed: Callable[[Task], CommandLine]) -> CommandLine:
    """Return a home in which the study of two laws was run without any fault."""
    return run_undisturbed(TWO_LAWS)


@pytest.fixture
def nodes() -> Iterator[Nodes]:
    """Start a cluster whose head has no slots; a test adds the nodes."""
    with Nodes.started() as nodes:
        yield nodes
