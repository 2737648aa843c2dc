import json
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from reports.numbers.predicted import ReadPredictions
from reports.pages.build import Report, draft_report
from sweeps.state.results import RunResult
from tests.reports.synthetic import FINISHED, SMALL, claim, finish, make_study, rows_of, with_oracle
from tests.reports.synthetic_predictions import reader

TIMED = {"report.html", "provenance.json"}


def write(
    results: Sequence[RunResult], out: Path, predictions: ReadPredictions | None = None
) -> Report:
    command = "mixsweep report small"
    return draft_report(
        SMALL, results, data_checksums={}, command=command, predictions=predictions
    ).write(out)


def read(report: Report) -> dict[str, bytes]:
    return {str(path.relative_to(report.folder)): path.read_bytes() for path in report.files}


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Report:
    """Return the report of finished runs, which tests only read."""
    return write(FINISHED, tmp_path_factory.mktemp("new") / "small")


def test_a_report_has_every_documented_file(small: Report) -> None:
    names = {str(path.relative_to(small.folder)) for path in small.folder.rglob("*.*")}
    files = {"table.md", "table.csv", "table.tex", "report.html", "runs.csv"}
    files |= {"provenance.json"}
    files |= {
        f"tables/{name}.{kind}" for name in ("sensitivity", "seeds") for kind in ("md", "csv")
    }
    for name in ("learning_curves", "final_values"):
        files |= {f"figures/{name}.{kind}" for kind in ("svg", "png", "csv", "txt")}
    assert names == set(read(small)) == files
    assert read(small)["table.md"].decode() == small.table.markdown()
    assert json.loads(read(small)["provenance.json"])["selection_rule"] == "none"


def test_the_same_results_give_the_same_bytes_again(small: Report, tmp_path: Path) -> None:
    assert read(write(FINISHED[::-1], tmp_path)) == read(small)


def test_only_the_page_and_the_provenance_contain_times(small: Report, tmp_path: Path) -> None:
    first = read(small)
    slower = tuple(
        finish(result.run, epochs=len(result.records), seconds=9.0) for result in FINISHED
    )
    second = read(write(slower, tmp_path / "two"))
    assert {name for name in first if first[name] != second[name]} == TIMED


def test_predictions_add_tables_and_figures_without_changing_other_files(
    small: Report, tmp_path: Path
) -> None:
    plain = read(small)
    more = read(write(FINISHED, tmp_path / "more", reader()))
    listings = ("calibration", "ensembles", "ensemble_sizes", "spread", "classes",
                "class_differences")  # fmt: skip
    added = {f"tables/{name}.{kind}" for name in listings for kind in ("md", "csv")}
    added |= {f"figures/reliability.{kind}" for kind in ("svg", "png", "csv", "txt")}
    assert more.keys() - plain.keys() == added
    assert {name for name in plain if plain[name] != more[name]} == TIMED, "with what was read"


@pytest.mark.usefixtures("undrawn")
@pytest.mark.parametrize(("num_arms", "oracle"), [(3, "uniform"), (7, "uniform"), (9, "erm")])
def test_an_oracle_is_marked_in_all_parts_of_a_report(num_arms: int, oracle: str) -> None:
    arms = ("erm", "midpoint", "uniform", *(f"arm-{place}" for place in range(3, num_arms)))
    study = replace(
        with_oracle(make_study(arms), oracle),
        equivalence=0.01,
        references={oracle: {"test/error": 0.19}},
        claims=tuple(claim("less", right=right, says="It is lower") for right in ("erm", 0.5)),
    )
    results = tuple(finish(run) for run in study.runs())
    draft = draft_report(study, results, data_checksums={}, command="", predictions=reader())
    texts = {
        name: text
        for name, text in draft.contents.items()
        if isinstance(text, str) and name.endswith((".md", ".tex", ".txt"))
    } | {"screen": draft.screen, "markdown": draft.markdown}
    named = {name for name, text in texts.items() if re.search(rf"\b{oracle}\b", text)}
    assert named >= {
        *(f"tables/{table}.md" for table in (
            "calibration", "class_differences", "classes", "ensemble_sizes", "ensembles",
            "equivalence", "references", "seeds", "sensitivity", "spread",
        )),
        "table.md", "table.tex", "screen", "markdown",
    }  # fmt: skip
    for name in named:
        assert not re.findall(rf".*\b{oracle}\b(?! \[oracle\]).*", texts[name]), name
    for name, text in draft.contents.items():
        if name.startswith("tables/") and name.endswith(".csv"):
            rows = [row for row in rows_of(str(text)) if "arm" in row]
            assert all((row["tags"] == "oracle") == (row["arm"] == oracle) for row in rows), name


@pytest.mark.usefixtures("undrawn")
def test_the_provenance_is_the_first_file_to_be_written() -> None:
    draft = draft_report(SMALL, FINISHED, data_checksums={}, command="")
    assert next(iter(draft.contents)) == "provenance.json"


@pytest.mark.usefixtures("undrawn")
def test_files_in_a_folder_without_a_report_are_kept(tmp_path: Path) -> None:
    for name in ("references.md", "points.csv", "figures/schedules.pdf"):
        (tmp_path / "paper" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "paper" / name).write_text("mine")
    write(FINISHED, tmp_path / "paper")
    for name in ("references.md", "points.csv", "figures/schedules.pdf"):
        assert (tmp_path / "paper" / name).read_text() == "mine"
