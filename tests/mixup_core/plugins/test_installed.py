"""Installed plugins are imported only if a study names them, and never replace built-in names."""

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from mixup_core.images.choices.models import Mlp, Model
from mixup_core.plugins import loading
from mixup_core.plugins.loading import load, load_installed, message_of, use
from mixup_core.plugins.source import PluginError
from tests.plugin_files import HEAD, MARGIN, TINY, Write

Install = Callable[..., Path]


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Install]:
    """Install a package like pip: modules, and metadata with entry points."""
    monkeypatch.syspath_prepend(str(tmp_path))
    installed: list[str] = []

    def do(name: str, code: str, **entries: str) -> Path:
        installed.append(name)
        folder = tmp_path / name
        folder.mkdir()
        (folder / "__init__.py").write_text("")
        (folder / "code.py").write_text(code)
        about = tmp_path / f"{name}-1.2.dist-info"
        about.mkdir()
        (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.2\n")
        lines = [f"{noun}.{entry} = {name}.code:{kind}" for noun, pair in entries.items()
                 for entry, kind in [pair.split("=")]]  # fmt: skip
        (about / "entry_points.txt").write_text("\n".join(["[mixsweep]", *lines, ""]))
        return folder / "code.py"

    yield do
    for name in installed:
        left = loading._loaded.pop(name, None)
        loading._take_out(left)
        for module in [m for m in sys.modules if m.partition(".")[0] == name]:
            del sys.modules[module]


def test_a_package_is_imported_only_when_a_study_names_its_entry(install: Install) -> None:
    install("extra", HEAD + TINY + MARGIN, model="tiny=Tiny", probe="margin=Margin")
    load_installed(["resnet18", "erm"])
    assert "extra.code" not in sys.modules
    load_installed(["tiny"])
    assert "tiny" in Model.catalogue
    origin = Model.catalogue.origins["tiny"]
    assert (origin.plugin, origin.version) == ("extra", "1.2")
    load_installed(["tiny", "margin"])
    load_installed(["tiny"])


def test_built_in_models_and_plugin_files_take_precedence_over_a_package(
    install: Install, plugin: Write
) -> None:
    install("shadow", "1 / 0", model="mlp=Mlp")
    install("extra", "1 / 0", model="tiny=Tiny")
    use(plugin(TINY))
    load_installed(["mlp", "tiny"])
    assert Model.catalogue["mlp"] is Mlp
    assert Model.catalogue.origins["tiny"].plugin == "tiny.py"


def test_two_packages_with_one_name_are_refused(install: Install) -> None:
    install("extra", HEAD + TINY, model="tiny=Tiny")
    install("other", HEAD + TINY, model="tiny=Tiny")
    with pytest.raises(
        PluginError, match="the installed packages extra and other both have a model tiny"
    ):
        load_installed(["tiny"])


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("1 / 0", "fails in line 1 of code.py: ZeroDivisionError: division by zero$"),
        (HEAD, "fails: AttributeError: .*Tiny"),
        (HEAD + "class Tiny: pass", "must extend a class of mixsweep.plugins"),
    ],
)
def test_a_package_is_refused_for_a_broken_entry_only_when_a_study_names_it(
    install: Install, code: str, message: str
) -> None:
    install("extra", code, model="tiny=Tiny")
    load_installed(["mlp"])
    with pytest.raises(PluginError, match=f"^plugin extra: the entry extra.code:Tiny {message}"):
        load_installed(["tiny"])


def test_a_package_that_differs_on_another_node_is_refused(install: Install) -> None:
    file = install("extra", HEAD + TINY, model="tiny=Tiny")
    load_installed(["tiny"])
    source = loading._loaded.pop("extra").source
    Model.catalogue.remove("tiny")
    file.write_text(HEAD + TINY + "# edited")
    with pytest.raises(PluginError, match=r"the package extra on .* differs from the one"):
        load(source)


def test_a_package_edited_in_a_running_process_is_refused(install: Install) -> None:
    file = install("edited", HEAD + TINY, model="tiny=Tiny")
    load_installed(["tiny"])
    file.write_text(HEAD + TINY.replace("Count = 8", "Count = 9"))
    with pytest.raises(PluginError, match=r"^plugin edited: the package edited was edited after"):
        load_installed(["tiny"])


def test_an_error_within_a_package_names_its_file_and_line(install: Install) -> None:
    install("raising", HEAD + TINY.replace("from torch import nn", "1 / 0"), model="tiny=Tiny")
    load_installed(["tiny"])
    try:
        Model.catalogue["tiny"]().network(1, 2, 8)
    except ZeroDivisionError as error:
        told = message_of(error)
    assert told.startswith("plugin raising: fails in line 18 of code.py (network): ZeroDivision")
    assert message_of(ValueError("ours")) is None
