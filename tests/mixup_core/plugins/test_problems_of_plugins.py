"""A problem of a plugin is read, keyed by its source, and run like a built-in one."""

import pickle
from pathlib import Path

import pytest

from mixup_core.config.building import built
from mixup_core.keys import run_key
from mixup_core.plugins.loading import use
from mixup_core.plugins.source import PluginError
from mixup_core.problem import PROBLEMS, problem_of
from sweeps.reading.study_file import load_study
from tests.plugin_files import HALVING, Write

STUDY = """
study: halved
problem: halving
base: {}
arms: {one: {}, two: {start: 2.0}}
seeds: 1
"""


def test_a_study_of_a_plugin_problem_runs_and_an_edit_changes_its_keys(
    plugin: Write, tmp_path: Path
) -> None:
    assert use(plugin(HALVING)).names == ("problem halving",)
    (tmp_path / "halved.yaml").write_text(STUDY)
    before = load_study(str(tmp_path / "halved.yaml")).runs()
    process = problem_of(before[1].config).start(before[1].config, None, "cpu")
    assert [record.metrics["value"] for record in process] == [1.0, 0.5, 0.25]
    use(plugin(HALVING.replace("/ 2 **", "/ 3 **")))
    after = load_study(str(tmp_path / "halved.yaml")).runs()
    assert {run.key for run in before}.isdisjoint(run.key for run in after)
    assert run_key(after[0].config) == after[0].key


def test_a_plugin_cannot_replace_a_bundled_problem(plugin: Write) -> None:
    before = dict(PROBLEMS)
    with pytest.raises(PluginError, match="the problem moons exists already"):
        use(plugin(HALVING.replace('"halving"', '"moons"')))
    with pytest.raises(PluginError, match="both must be equal"):
        use(plugin(HALVING.replace('= "halving"', '= "other"', 1)))
    assert dict(PROBLEMS) == before


def test_a_configuration_of_a_plugin_problem_is_sent_to_a_worker(plugin: Write) -> None:
    from sweeps.running.assignment import Assignment

    use(plugin(HALVING))
    problem = PROBLEMS["halving"]
    assert not isinstance(problem, str)
    assignment = Assignment(config=built(problem.config, {}), store="there")
    sent = pickle.loads(pickle.dumps(assignment))
    assert sent.open() == assignment
    assert [source.name for source in sent.packed[0]] == ["tiny.py"]
