"""Documentation: it builds without a warning, and every code block in it works."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from docs.mathml import mathml
from docs.pictures import PICTURES
from sweeps.reading.study_file import load_study
from tests.mixup_core.small_files import fill

ROOT = Path(__file__).parents[2]
PAGES = [
    page
    for page in sorted((ROOT / "docs").rglob("*.md"))
    if not {"_generated", "_build"} & {*page.parts}
]
"""Pages that are written by hand."""
TRIED = [*PAGES, ROOT / "README.md"]
ENDLESS = ("mixsweep ui",)
"""Commands that serve until they are interrupted; tests of MLflow's pages run them."""
SET_UP = {"make quickstart", "make test", "make .venv/.ready", ". .venv/bin/activate"}


def blocks(page: Path) -> Iterator[tuple[str, str]]:
    """Yield the language and the text of each fenced block of a page."""
    for found in re.finditer(
        r"^```(\S+).*?\n(.*?)^```", page.read_text(), re.DOTALL | re.MULTILINE
    ):
        yield found[1], found[2]


def typed(block: str) -> list[str]:
    return [
        line[2:].partition("  #")[0].strip() for line in block.splitlines() if line.startswith("$ ")
    ]


@pytest.mark.long
def test_the_documentation_builds_without_a_warning_and_is_read_without_a_network(
    tmp_path: Path,
) -> None:
    built = subprocess.run(
        [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", "-b", "html", "-d",
         tmp_path / "doctrees", ROOT / "docs", tmp_path / "html"],
        cwd=ROOT, capture_output=True, text=True,
    )  # fmt: skip
    assert built.returncode == 0, built.stderr
    for page in (tmp_path / "html").rglob("*.html"):
        text = page.read_text()
        fetched = re.findall(r"<(?:script|link|img|iframe)\b[^>]*(?:src|href)=\"([^\"]*)", text)
        assert not [address for address in fetched if "//" in address], page.name


FORMULA = r"\$\$(.+?)\$\$|\$([^$]+?)\$"


def test_every_formula_of_the_documentation_has_a_mathml_form() -> None:
    formulas = []
    for page in PAGES:
        text = re.sub(r"^```.*?^```|`[^`]*`", "", page.read_text(), flags=re.DOTALL | re.MULTILINE)
        formulas += [block or line for block, line in re.findall(FORMULA, text, re.DOTALL)]
    assert len(formulas) > 40
    for formula in formulas:
        assert mathml(formula).startswith("<math ")
    with pytest.raises(ValueError, match="no MathML"):
        mathml(r"\unknown{a}")


TEXTS = [*PAGES, *sorted(ROOT.glob("*.md")), ROOT / "llms.txt"]


@pytest.mark.parametrize("page", TEXTS, ids=lambda page: page.stem)
def test_files_named_or_linked_in_a_page_exist(page: Path) -> None:
    text = page.read_text()
    links = re.findall(r"\]\((?!https?:|mailto:|#)([^)#]+)[^)]*\)", text)
    rooms = "mixup_core|sweeps|reports|tests|docs|examples"
    named = re.findall(rf"`((?:{rooms})/[a-z_./-]+\.(?:py|md|yaml))`", text)
    if page.name == "CHANGELOG.md":
        named = []  # it names files of earlier releases
    missing = {link for link in links if not (page.parent / link).exists()}
    missing |= {name for name in named if not (ROOT / name).exists()}
    drawn = {link for link in missing if Path(link).stem in PICTURES and "_pictures/" in link}
    assert not missing - drawn - {"_generated/left-out.md"}


@pytest.mark.parametrize("page", TRIED, ids=lambda page: page.stem)
def test_every_study_file_in_a_page_can_be_read(page: Path, tmp_path: Path) -> None:
    _make_photos(tmp_path)
    for language, text in blocks(page):
        if language == "yaml" and text.startswith("study:"):
            file = tmp_path / "study.yaml"
            file.write_text(text)
            assert load_study(str(file)).arms


@pytest.mark.long
@pytest.mark.timeout(900)
@pytest.mark.parametrize("page", TRIED, ids=lambda page: page.stem)
def test_every_command_and_script_of_a_page_runs_in_order(page: Path, tmp_path: Path) -> None:
    _make_photos(tmp_path)
    environment = _environment(tmp_path)
    for language, text in blocks(page):
        if language == "yaml" and text.startswith("study:"):
            name = text.split()[1]
            for file in (tmp_path / f"{name}.yaml", tmp_path / "FILE"):
                file.write_text(text)
        commands = typed(text) if language == "console" else []
        if language == "python":
            commands = [f"python - <<'END'\n{text}\nEND"]
        for line in commands:
            if line in SET_UP or line.startswith(ENDLESS):
                continue
            ran = subprocess.run(
                ["bash", "-c", line], cwd=tmp_path, env=environment, capture_output=True, text=True
            )
            assert ran.returncode == 0, f"$ {line}\n{ran.stdout}\n{ran.stderr}"


def _environment(folder: Path) -> Mapping[str, str]:
    """Return an environment in which typed commands run from the checkout, with programs below."""
    programs = folder / "bin"
    programs.mkdir()
    for name, module in (("mixsweep", "-m mixsweep"), ("python", "")):
        (programs / name).write_text(f'#!/bin/sh\nexec {sys.executable} {module} "$@"\n')
        (programs / name).chmod(0o755)
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("RAY_", "MLFLOW_", "MIX"))}
    return kept | {
        "PATH": f"{programs}:/usr/bin:/bin",
        "PYTHONPATH": str(ROOT),
        "OMP_NUM_THREADS": "1",
    }


def _make_photos(folder: Path) -> None:
    """Write small photos of two classes, and a file of weights."""
    (folder / "resnet18.pt").write_bytes(b"weights")
    for split, first, count in (("train", 0, 12), ("test", 24, 6)):
        fill(folder / "photos" / split, first, ants=count, bees=count)
