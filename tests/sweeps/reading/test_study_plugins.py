"""Plugins that a study file names: loaded from its folder, and only if the file itself is read."""

from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from mixup_core.plugins import loading
from mixup_core.problem import KnownData
from sweeps.reading.study_file import (
    StudyError,
    load_study,
    plugin_options,
    study_of,
    study_of_launch,
)
from sweeps.state.ledger import Launch
from tests.plugin_files import DOTS, MARGIN, STUDY, TINY, Write, unload_plugins

NAMED = f"plugins: [parts/tiny.py]\n{STUDY}"


@pytest.fixture
def study(plugin: Write, tmp_path: Path) -> Path:
    (tmp_path / "parts").mkdir()
    plugin(TINY, MARGIN, DOTS).rename(tmp_path / "parts" / "tiny.py")
    file = tmp_path / "dots.yaml"
    file.write_text(NAMED)
    return file


def _launch(study: Path) -> Launch:
    return Launch.of(load_study(str(study)), "mixsweep run dots.yaml")


def _known(study: str) -> KnownData:
    raise AssertionError(study)


def test_a_study_file_loads_the_plugins_beside_it(study: Path, tmp_path: Path) -> None:
    read = load_study(str(study), ["seeds=1"])
    assert read.plugins == ("parts/tiny.py",)
    assert [arm.model.name for arm in read.arms.values()] == ["tiny", "tiny"]  # type: ignore[attr-defined]
    loading.use(tmp_path / "parts" / "tiny.py")
    study.write_text(STUDY)
    assert [run.key for run in load_study(str(study), ["seeds=1"]).runs()] == [
        run.key for run in read.runs()
    ], "keys do not depend on how a plugin is loaded"


@pytest.mark.parametrize("place", ["../tiny.py", "/tmp/tiny.py", "parts/../../tiny.py", "link.py"])
def test_a_plugin_outside_of_the_folder_of_the_study_is_refused(
    study: Path, tmp_path: Path, place: str
) -> None:
    (tmp_path.parent / "tiny.py").write_text("raise SystemExit(9)")
    (tmp_path / "link.py").symlink_to(tmp_path.parent / "tiny.py")
    study.write_text(NAMED.replace("parts/tiny.py", place))
    with pytest.raises(StudyError, match="is outside of the folder of the study; move it"):
        load_study(str(study))


def test_a_mapping_and_the_record_of_a_launch_run_no_code_and_name_the_file(study: Path) -> None:
    launch, document = _launch(study), yaml.safe_load(NAMED)
    file = study.parent / "parts" / "tiny.py"
    assert plugin_options(launch) == (f"--plugin {file}",)
    unload_plugins()
    file.write_text("raise SystemExit(9)")
    with pytest.raises(StudyError, match=r"use\(FILE\)\n(.|\n)*got text 'dots'"):
        study_of(document)
    with pytest.raises(StudyError) as caught:
        study_of_launch(launch, "dots", _known)
    first, second = str(caught.value).splitlines()
    assert first.startswith(f"dots: this study was launched with --plugin {file}; add this option")
    assert second.endswith("base.data.name: got text 'dots' (did you mean digits?)")


def test_plugin_options_are_read_from_the_recorded_command_line(study: Path) -> None:
    command = "mixsweep run s.yaml --plugin 'my methods/p.py' --set seeds=3 --plugin=more.py"
    launch = replace(_launch(study), source="", command=command)
    assert plugin_options(launch) == ("--plugin 'my methods/p.py'", "--plugin=more.py")
    assert plugin_options(replace(launch, command="mixsweep run s.yaml")) == ()


@pytest.mark.parametrize(
    "source",
    ["plugins: [", "plugins: 3", "[plugins:]", "&a [*a]\nplugins:", "plugins: " + "[" * 3000,
     "plugins: !!python/object/apply:os.system ['false']", "plugins: '\\0'"],
)  # fmt: skip
def test_a_launch_whose_source_is_no_study_names_no_plugin(study: Path, source: str) -> None:
    launch = replace(_launch(study), source=source, command="mixsweep run")
    assert plugin_options(launch) == ()
