"""The Python interface for notebooks: the same tables as the files, and single runs."""

import json
import os
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import mixsweep
from sweeps.reading.study_file import StudyError
from tests.filled import train_into
from tests.interpreters import run_python
from tests.mixsweep.cli.conftest import type_in
from tests.plugin_files import unload_plugins

NOTEBOOK = Path(__file__).parents[2] / "examples" / "results.ipynb"


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Home with every run of the digits study but one, trained without Ray."""
    home = tmp_path_factory.mktemp("notebook") / "runs"
    train_into(home / "store", mixsweep.read_study("digits").runs()[:-1])
    return home


def test_figures_equal_the_files_of_the_report(home: Path, tmp_path: Path) -> None:
    said = type_in("report", "digits", "--home", str(home), "--out", str(tmp_path))
    assert said.return_value == 1
    results = mixsweep.load("digits", home=home)
    drawn = {path.stem for path in (tmp_path / "figures").glob("*.png")}
    assert results.figures.keys() == drawn
    for name, figure in results.figures.items():
        assert figure._repr_png_() == (tmp_path / "figures" / f"{name}.png").read_bytes()
        pd.testing.assert_frame_equal(
            figure.frame, pd.read_csv(tmp_path / "figures" / f"{name}.csv")
        )


STUDY = {
    "study": "from-a-mapping",
    "base": {"data": {"name": "digits", "num_train": 64}, "model": {"name": "mlp", "hidden": [4]},
             "epochs": 1, "batch_size": 32},
    "arms": {"erm": {"mix.law": "erm"}, "uniform": {"mix": {"law": {"beta": 1.0}}}},
    "seeds": 1,
    "claims": [{"says": "a", "source": "b",
                "that": {"less": ["uniform", "erm"], "metric": "test/error"}}],
}  # fmt: skip


@pytest.mark.timeout(300)
def test_a_study_runs_in_this_process_and_is_not_trained_twice(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    results = mixsweep.run(STUDY, home=tmp_path)
    assert capsys.readouterr().out == ""
    head, _, table = repr(results).partition("\n\n")
    assert head == f"{results.study.name}: 2 of 2 runs are finished"
    assert list(results.runs["outcome"]) == ["complete"] * 2
    report = tmp_path / "reports" / "from-a-mapping"
    verdicts, _, written = (report / "table.md").read_text().partition(" separately.\n\n")
    assert verdicts.startswith("Claims and verdicts")
    assert table == written, "no verdict is shown without a report that counts it"
    latex = (report / "table.tex").read_text()
    assert latex == results.to_latex()
    assert "torch" in latex
    times = [result.facts[0].stored_at_ms for result in results.stored]
    again = mixsweep.run(STUDY, home=tmp_path)
    assert [result.facts[0].stored_at_ms for result in again.stored] == times
    assert list(mixsweep.load("from-a-mapping", home=tmp_path).arms["n"]) == [1, 1]
    classes = results.classes
    assert (len(classes), set(classes["arm"])) == (20, {"erm", "uniform"})
    written = pd.read_csv(tmp_path / "reports" / "from-a-mapping" / "tables" / "classes.csv")
    assert list(written.columns) == list(classes.columns)
    np.testing.assert_allclose(written["error_mean"], classes["error_mean"])


def test_a_study_is_loaded_and_reported_without_its_plugin(tmp_path: Path) -> None:
    templates = Path(mixsweep.__file__).parent / "templates"
    small = "seeds=1", "base.epochs=1"
    home = tmp_path / "runs"
    with_plugin = mixsweep.run(templates / "study.yaml", *small, home=home)
    unload_plugins()
    results = mixsweep.load("corners", home=home)
    assert results.to_latex() == with_plugin.to_latex()
    pd.testing.assert_frame_equal(results.epochs, with_plugin.epochs)
    assert results.figures.keys() == with_plugin.figures.keys()
    folder = home / "reports" / "corners"
    before = {path: path.read_bytes() for path in folder.rglob("*.csv")}
    for verb in ("report", "status", "share"):
        said = type_in(verb, "corners", "--home", str(home))
        assert said.return_value == 0, said.output
    assert {path: path.read_bytes() for path in folder.rglob("*.csv")} == before
    archive, other = home / "exports" / "corners.mixsweep.zip", tmp_path / "other"
    said = type_in("add", str(archive), "--home", str(other))
    assert said.return_value == 0, said.output
    assert mixsweep.load("corners", home=other).to_latex().count("halves")
    with pytest.raises(StudyError, match=r"launched with --plugin|plugin\.py is not loaded"):
        mixsweep.run("corners", home=home)


_FEATURES = """
import mixsweep
study = mixsweep.read_study("gaussian-features")
run = next(run for run in study.runs() if (run.arm, run.seed) == ("uniform ratio=1.0", 2))
*_, last = mixsweep.train(run)
print(*(value.hex() for _, value in sorted(last.metrics.items())))
"""


@pytest.mark.long
def test_training_gives_the_same_bits_on_one_core_and_on_several() -> None:
    given = {name: value for name, value in os.environ.items() if "_THREADS" not in name}
    one, several = (
        run_python(_FEATURES, env=env, check=True).stdout
        for env in (given | {"OMP_NUM_THREADS": "1"}, given)
    )
    assert one == several != ""


@pytest.mark.long
def test_the_notebook_runs_from_its_first_cell_to_its_last(home: Path) -> None:
    cells = json.loads(NOTEBOOK.read_text())["cells"]
    code = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    assert not any(cell.get("outputs") for cell in cells), "it is kept without outputs"
    program = "\n".join(code) + "\nassert last.metrics['test/error'] == stored\n"
    path = {"PYTHONPATH": str(NOTEBOOK.parents[1]), "PATH": "/usr/bin:/bin"}
    ran = run_python(program, cwd=home.parent, env=path, timeout=600)
    assert ran.returncode == 0, ran.stderr
