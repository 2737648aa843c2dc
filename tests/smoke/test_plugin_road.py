"""A plugin that `mixsweep new` writes is edited after its first runs."""

from pathlib import Path

import pytest

from tests.conftest import CommandLines

pytestmark = [pytest.mark.slow, pytest.mark.long, pytest.mark.timeout(900, func_only=True)]


@pytest.fixture
def folder(tmp_path: Path, command_line: CommandLines, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    command_line()("new", ".")
    return tmp_path


def test_an_edited_plugin_retrains_only_the_runs_that_use_the_plugin(
    folder: Path, command_line: CommandLines
) -> None:
    mixsweep = command_line()
    study = (folder / "study.yaml").read_text().replace("corners, val_size: 80", "digits")
    study = study.replace("plugins: [plugin.py]", "")
    (folder / "small.yaml").write_text(study.replace("{name: tiny, channels: 8}", "{name: mlp}"))
    small = ("small.yaml", "--plugin", "plugin.py", "--set", "seeds=1")
    mixsweep("run", *small, "--engine", "inline")
    plugin = folder / "plugin.py"
    plugin.write_text(plugin.read_text() + "\n# a remark\n")
    assert mixsweep.json("plan", *small)["to_run"] == 0, "a remark changes no number"
    plugin.write_text(plugin.read_text().replace("rows / height", "1 - rows / height"))
    refused = mixsweep("plan", "small.yaml", code=2).stderr
    assert "if a plugin defines this operation, add --plugin FILE\n" in refused
    planned = mixsweep("plan", *small)
    assert (
        "1 finished run stored here with another version of the plugin plugin.py (source "
        in planned.stderr
    )
    assert mixsweep.json("plan", *small)["to_run"] == 1, "ERM and mixup use none of it"
