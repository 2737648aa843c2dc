"""Inline code of the pages: paths of fields, settings and commands that exist."""

import re
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
import yaml

from mixsweep.cli.main import commands
from mixup_core.config.building import parsed
from mixup_core.config.parts import leaves, places
from mixup_core.config.written_forms import SpellingError
from mixup_core.images.config import TrainConfig
from mixup_core.plugins.checking import trial_of
from mixup_core.plugins.loading import Plugin, use
from mixup_core.plugins.suite import smallest
from mixup_core.problem import PROBLEMS, Problem, problem_named
from mixup_core.rules import RuleError
from sweeps.reading.tree_paths import config_paths
from tests.docs.test_documentation import PAGES as OF_DOCS
from tests.docs.test_documentation import ROOT
from tests.docs.test_shell_blocks import EVERY as IN_BLOCKS
from tests.plugin_files import Write

PAGES = [
    *OF_DOCS,
    *(
        page
        for pattern in ("*.md", "cluster/*.md", "examples/*/*.md", ".github/**/*.md")
        for page in sorted(ROOT.glob(pattern))
        if page.name != "CHANGELOG.md"
    ),
]
INLINE = re.compile(r"(?<!`)`([^`\n]+)`(?!`)")
PATH = re.compile(r"[a-z_]+(?:\.[a-z_][a-z0-9_-]*)+")
OF_FILES = {
    "py", "md", "yaml", "yml", "csv", "json", "txt", "toml", "db", "html", "lock", "npz", "tex",
}  # fmt: skip
"""Endings of file names, which look like paths of fields."""


def _inline(page: Path) -> Iterator[str]:
    text = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.DOTALL | re.MULTILINE)
    yield from dict.fromkeys(INLINE.findall(text.replace("\n", " ")))


def _known() -> set[str]:
    """Return all paths of fields, and of the groups of fields above them."""
    found = set[str]()
    for name in PROBLEMS:
        for path in places(problem_named(name).config):
            words = path.split(".")
            found |= {".".join(words[: count + 1]) for count in range(len(words))}
        found |= config_paths(problem_named(name)).tagged.keys()
    return found


def _load_blocks(page: Path, plugin: Write) -> list[Plugin]:
    """Load the plugins that the page defines, so that their fields are known."""
    text, loaded = page.read_text(), []
    for number, block in enumerate(re.findall(r"^```python\n(.*?)^```", text, re.DOTALL | re.M)):
        if "@dataclass" in block and "from mixsweep.plugins import" in block:
            file = plugin(name=f"block{number}.py")
            file.write_text(block)
            loaded.append(use(file))
    return loaded


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_path_in_a_page_names_a_field(page: Path, plugin: Write) -> None:
    _load_blocks(page, plugin)
    known = _known()
    roots = {path.partition(".")[0] for path in known if "." in path}
    wrong = []
    for text in _inline(page):
        path = text.partition(":")[0].partition("=")[0].removeprefix("base.").removesuffix(".*")
        is_path = PATH.fullmatch(path) and path.partition(".")[0] in roots
        if is_path and path.rpartition(".")[2] not in OF_FILES and path not in known:
            wrong.append(path)
    assert not wrong


def test_every_command_in_a_page_exists_with_its_options() -> None:
    inline = [text.split() for page in PAGES for text in _inline(page)]
    for words in (*IN_BLOCKS, *inline):
        if words[:1] != ["mixsweep"] or len(words) < 2 or not re.fullmatch("[a-z]+", words[1]):
            continue
        command: click.Command = commands.commands[words[1]]
        if isinstance(command, click.Group) and len(words) > 2:
            command = command.commands[words[2]]
        known = {name for parameter in command.params for name in parameter.opts}
        given = {word.partition("=")[0] for word in words if word.startswith("--")} - {"--help"}
        assert given <= known, words


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_setting_in_a_page_has_a_value_of_its_field(page: Path, plugin: Write) -> None:
    _load_blocks(page, plugin)
    known, wrong = leaves(TrainConfig), []
    paths = config_paths(problem_named("images"))
    for text in _inline(page):
        is_pattern = "..." in text or re.search(r"\b[A-Z]{2,}\b", text)
        if is_pattern or not re.match(r"{?[a-z_.]+: \S", text):
            continue
        try:
            for given, value in yaml.safe_load(text).items():
                path = paths.short(given.removeprefix("base."))
                if path in known:
                    parsed(known[path].part.hint, value)
        except (yaml.YAMLError, SpellingError, RuleError) as error:
            wrong.append(f"{text}: {error}")
    assert not wrong


@pytest.mark.parametrize("name", ["own-method.md", "plugins.md"])
def test_every_plugin_of_a_page_trains(name: str, plugin: Write) -> None:
    (page,) = (page for page in PAGES if page.name == name)
    entries = [entry for loaded in _load_blocks(page, plugin) for _, entry in loaded.entries]
    assert entries
    for entry in entries:
        if isinstance(entry, Problem):
            config = smallest(entry)
            assert len(list(entry.start(config, None, "cpu"))) == config.epochs
        else:
            records = [record for record, _ in trial_of(entry).trained()]
            assert len(records) == 3
            metrics = getattr(entry, "metrics", {}).keys()
            assert not metrics or any(metrics & record.metrics.keys() for record in records)
