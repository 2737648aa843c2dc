import csv
import re
import shutil
from pathlib import Path

import pytest

from docs.pages.manuscript import Manuscript
from docs.pages.manuscript_cells import MeasuredColumn
from mixup_core.keys import stage_keys
from mixup_core.problem import problem_of
from mixup_core.records import EpochRecord
from mixup_core.store.checkpoints import Store
from mixup_core.store.manifests import EpochFacts
from reports.pages.build import draft_report
from sweeps.machine.home import Home
from sweeps.reading.study_file import load_study
from sweeps.state.results import read_results

STUDY = """
study: small-views
description: Lemma 3.2 in small
problem: linear-views
base: {law: midpoint, classes: 3, quantity: {excess: {points: 10}}, first_scale: 2.5, epochs: 3}
arms:
  equal: {quantity.first: 1.0}
  one-feature: {quantity.first: 2.0, quantity.second: 0.0}
seeds: 3
baseline: equal
claims:
  - says: One feature of two is not enough
    source: lemma 3.2
    that: {less: [equal, one-feature], metric: excess/measured}
"""


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Home:
    """Return a home with every run of the study but one, and its report."""
    folder = tmp_path_factory.mktemp("home")
    (folder / "small-views.yaml").write_text(STUDY)
    home = Home(folder=folder)
    study, store = load_study(str(folder / "small-views.yaml")), Store(home.store)
    for run in study.runs():
        if (run.arm, run.seed) == ("equal", 2):
            continue
        records = list(problem_of(run.config).start(run.config, None, "cpu"))
        facts = [EpochFacts(seconds=2.0, stored_at_ms=0)] * len(records)
        store.write(
            stage_keys(run.config)[-1], records=records, facts=facts, environment={}, state=None
        )
    draft_report(
        study, read_results(study.runs(), store),
        data_checksums={}, command="",
    ).write(home.report_of("small-views"))  # fmt: skip
    return home


def written(home: Home, out: Path, text: str) -> str:
    template = out / "template.md"
    template.parent.mkdir(exist_ok=True)
    template.write_text(text.replace("STUDY", str(home.folder / "small-views.yaml")))
    page = Manuscript(home=home, out=out / "page").write(template)
    assert page.name == "README.md"
    return page.read_text()


def test_verdicts_in_a_manuscript_equal_the_verdicts_of_the_report(
    home: Home, tmp_path: Path
) -> None:
    page = written(home, tmp_path, "{{ verdicts('STUDY') }}")
    assert "| One feature of two is not enough | lemma 3.2 | **unfinished** |" in page
    assert (
        "excess of the mixed loss over its lower bound, nats: equal less than one-feature" in page
    )


def test_verdicts_of_other_claims_than_those_of_the_study_are_refused(
    home: Home, tmp_path: Path
) -> None:
    report = tmp_path / "reports" / "small-views"
    report.mkdir(parents=True)
    text = (home.report_of("small-views") / "tables" / "verdicts.csv").read_text()
    (report / "verdicts.csv").write_text(text.replace("One feature of two", "One feature of three"))
    page = Manuscript(home=home, out=tmp_path, reports=tmp_path / "reports")
    with pytest.raises(ValueError, match=r"has other claims than .*small-views"):
        page.verdicts(str(home.folder / "small-views.yaml"))


def test_a_manuscript_page_copies_no_report(home: Home, tmp_path: Path) -> None:
    """Each study has one folder; a copy beside the page would be a second, older one."""
    written(home, tmp_path, "{{ verdicts('STUDY') }}{{ figure('STUDY', 'final_values') }}")
    assert [path.name for path in (tmp_path / "page").iterdir()] == ["README.md"]


VERDICTS = """says,verdict,value,low,high,reference,n
One feature of two is not enough,holds,-7.75635,-8.62703,-6.88568,-8,3
One feature of two is not enough,fails,0.25,0.25,0.25,0.2,3
"""


def test_verdicts_in_a_manuscript_show_the_comparison_and_the_value(
    home: Home, tmp_path: Path
) -> None:
    numbered = (
        STUDY
        + """
  - says: One feature of two is not enough
    source: the same in numbers
    that: {less: [equal, 1.0e-8], metric: excess/measured}
"""
    )
    (tmp_path / "numbered.yaml").write_text(numbered.replace("small-views", "numbered"))
    report = Home(folder=tmp_path).report_of("numbered")
    report.mkdir(parents=True)
    (report / "verdicts.csv").write_text(VERDICTS)
    found = Manuscript(home=Home(folder=tmp_path), out=tmp_path / "page").verdicts(
        str(tmp_path / "numbered.yaml")
    )
    header, _, first, second = ([cell.strip() for cell in line.split("|")[1:-1]]
        for line in found.splitlines())  # fmt: skip
    assert header == ["claim", "source", "verdict", "comparison", "value [interval]", "n"]
    excess = "excess of the mixed loss over its lower bound, nats"
    assert first[3] == f"{excess}: equal less than one-feature (source: -8 nats)"
    assert first[4] == "equal minus one-feature: -7.756 [-8.627, -6.886] nats"
    assert second[:2] == ["One feature of two is not enough", "the same in numbers"]
    assert second[3] == f"{excess}: equal less than 1e-08"
    assert second[4] == "equal: 0.25 nats (all 3)"
    near = VERDICTS.replace("0.25,0.25,0.25", "0.99998,0.99996,1.00001")
    (report / "verdicts.csv").write_text(near)
    found = Manuscript(home=Home(folder=tmp_path), out=tmp_path / "page").verdicts(
        str(tmp_path / "numbered.yaml")
    )
    assert "| equal: 0.99998 [0.99996, 1] nats" in found


POINTS = """arm,rank,{path},{metric}_mean,{metric}_ci_low,{metric}_ci_high,n,selected,tied
point 1,1,2.46801,0.125,0.0625,0.1875,5,true,false
point 0,2,0.5,0.125,0.125,0.125,5,false,true
erm,,,0.25,0.25,0.25,5,false,false
"""


def test_a_winner_is_described_by_its_values_mean_and_ties(tmp_path: Path) -> None:
    report = Home(folder=tmp_path).report_of("alternating-line-flip")
    report.mkdir(parents=True)
    text = POINTS.format(path="law.alpha", metric="middle/tie")
    (report / "points.csv").write_text(text)
    manuscript = Manuscript(home=Home(folder=tmp_path), out=tmp_path)
    assert manuscript.winner("alternating-line-flip") == (
        "point 1 has law.alpha = 2.468; 1 other point has the same mean "
        "(distance of the middle point's probability from 1/2: 0.125 ± 0.062 over 5 seeds; 2 "
        "points tried)"
    )
    (report / "points.csv").write_text(text.replace("true,false", "false,false"))
    assert manuscript.winner("alternating-line-flip") == "none of 2 points is selected"


def test_results_in_a_manuscript_show_the_number_of_seeds(home: Home, tmp_path: Path) -> None:
    page = written(home, tmp_path, "{{ results('STUDY', 'excess/measured') }}")
    with (home.report_of("small-views") / "table.csv").open() as lines:
        rows = {row["arm"]: row for row in csv.DictReader(lines)}
    assert f"| {float(rows['one-feature']['excess/measured_mean']):.4g} ± " in page
    assert "| equal       | 2/3 |" in page
    assert "| one-feature | 3/3 |" in page


@pytest.mark.parametrize(("factor", "mark"), [(1.0, "="), (1.05, "≈"), (2.0, "≠")])
def test_a_remeasured_number_is_marked_as_equal_or_different(
    home: Home, tmp_path: Path, factor: float, mark: str
) -> None:
    study = load_study(str(home.folder / "small-views.yaml"))
    results = read_results(study.runs_of("one-feature"), Store(home.store))
    (at,) = {r.records[1].metrics["scale"] for r in results}
    mean = sum(r.records[1].metrics["excess/measured"] for r in results) / 3
    assert at == 5
    column = "Column(heading='gamma = 5', metric='excess/measured', place=5, scale=10)"
    printed = f"{10 * factor * mean:.6f}"
    page = written(
        home, tmp_path, f"{{{{ again('STUDY', [{column}], {{'one-feature': '{printed}'}}) }}}}"
    )
    assert f"({printed}) {mark} |" in page
    assert f"1 entry compared: {'1' if mark == '=' else '0'} =" in page


@pytest.mark.parametrize(
    ("seeds", "printed", "mark"),
    [
        (None, "1.70", "≈"), (None, "1.80", "≠"), (1, "2.40", "≈"), (1, "2.43", "≠"),
        (1000, "1.80", "≠"),
    ],
)  # fmt: skip
def test_a_printed_number_of_one_seed_is_compared_with_a_prediction_interval(
    tmp_path: Path, seeds: int | None, printed: str, mark: str
) -> None:
    """At n = 3, mean 1.1 and sd 0.26, the interval is ±0.66 for the mean and ±1.31 for one seed."""
    path = tmp_path / "small-views.yaml"
    path.write_text(STUDY)
    home = Home(folder=tmp_path)
    rows = [f"one-feature,{seed},{value},complete\n" for seed, value in enumerate((0.9, 1.0, 1.4))]
    report = home.report_of("small-views")
    report.mkdir(parents=True)
    lines = ["arm,seed,excess/measured,outcome\n", *rows, "equal,0,,missing\n"]
    (report / "runs.csv").write_text("".join(lines))
    found = Manuscript(home=home, out=tmp_path).again(
        str(path),
        [MeasuredColumn(heading="", metric="excess/measured")],
        {"one-feature": printed},
        seeds,
    )
    assert f"| 1.1 ± 0.66 ({printed}) {mark} |" in found
    assert ("prediction interval of one seed" in found) == (seeds == 1)
    assert ("prediction interval of a mean of 1000 seeds" in found) == (seeds == 1000)


def test_results_are_printed_with_the_interval_of_the_report(tmp_path: Path) -> None:
    report = Home(folder=tmp_path).report_of("two-layer")
    report.mkdir(parents=True)
    name = "features/both"
    (report / "table.csv").write_text(
        f"arm,n,seeds_expected,{name}_mean,{name}_ci_low,{name}_ci_high\n"
        "midpoint,5,5,1.0,1.0,1.0\nerm,5,5,0.1,0.05,0.15\nlate,1,5,0.5,,\n"
        "two,5,5,0.2,0.02,0.7\n"
    )
    found = Manuscript(home=Home(folder=tmp_path), out=tmp_path).results("two-layer", name)
    cells = [line.split("|")[3].strip() for line in found.splitlines()[2:]]
    assert cells == ["100 (all 5)", "10 ± 5", "50", "20 [2, 70]"]


def test_a_number_that_was_not_measured_does_not_count_as_agreement(
    home: Home, tmp_path: Path
) -> None:
    column = MeasuredColumn(heading="", metric="excess/measured", place=7.0)
    found = Manuscript(home=home, out=tmp_path).again(
        str(home.folder / "small-views.yaml"), [column, column], {"equal": "1.0 -"}
    )
    assert "— (1.0) | —" in found
    assert "0 entries" in found


def test_numbers_costs_and_figures_in_a_manuscript_come_from_the_runs(
    home: Home, tmp_path: Path
) -> None:
    text = (
        "{{ has('STUDY') }} {{ number('STUDY', 'equal', 'scale') }}\n"
        "{{ cost('STUDY', 'scale') }}\n{{ figure('STUDY', 'final_values') }}"
    )
    page = written(home, tmp_path, text)
    assert page.startswith("True 10\n")
    assert "| 10 " in page
    assert "6 (6 to 6)" in page
    links = re.findall(r"\]\(([^)]+)\)", page)
    assert [Path(link).name for link in links] == ["final_values.png"]
    report = home.report_of("small-views")
    assert {(tmp_path / "page" / link).resolve().parent for link in links} == {report / "figures"}


def test_an_arm_without_a_mean_has_a_dash_in_a_table_of_costs(home: Home, tmp_path: Path) -> None:
    folder = tmp_path / "reports" / "small-views"
    shutil.copytree(home.report_of("small-views"), folder)
    with (folder / "table.csv").open(encoding="utf-8", newline="") as lines:
        diverged, missing, *others = csv.DictReader(lines)
    diverged["scale_mean"] = ""
    with (folder / "table.csv").open("w", encoding="utf-8", newline="") as lines:
        table = csv.DictWriter(lines, list(diverged))
        table.writeheader()
        table.writerows([diverged, *others])
    page = Manuscript(home=home, out=tmp_path, reports=tmp_path / "reports")
    study = str(home.folder / "small-views.yaml")
    rows = [line.split(" | ") for line in page.cost(study, "scale").splitlines()[2:]]
    cells = {row[0].strip("| "): row[2].strip() for row in rows}
    assert cells[diverged["arm"]] == cells[missing["arm"]] == "—"
    assert all(cells[row["arm"]] != "—" for row in others)


@pytest.mark.parametrize(("arm", "metric"), [("equals", "scale"), ("equal", "scales")])
def test_an_unknown_arm_or_metric_of_a_manuscript_is_an_error(
    home: Home, tmp_path: Path, arm: str, metric: str
) -> None:
    with pytest.raises(KeyError):
        written(home, tmp_path, f"{{{{ number('STUDY', '{arm}', '{metric}') }}}}")


def test_the_first_position_at_a_level_is_computed_from_the_mean(
    home: Home, tmp_path: Path
) -> None:
    study = str(home.folder / "small-views.yaml")
    results = read_results(load_study(study).runs_of("one-feature"), Store(home.store))
    means = [
        sum(result.records[n].metrics["excess/measured"] for result in results) / 3
        for n in range(3)
    ]
    assert means[0] < means[1] < means[2]
    page = Manuscript(home=home, out=tmp_path)
    at = [page.first(study, "one-feature", "excess/measured", m + 1e-9) for m in (0, means[0])]
    assert at == ["> 10", "2.5"]
    assert page.first(study, "equal", "excess/measured", 0.05) == "5"


def test_a_position_on_an_epoch_axis_counts_epochs_from_one(tmp_path: Path) -> None:
    (tmp_path / "small.yaml").write_text(
        "study: small\nseeds: 1\n"
        "base: {data: {name: digits}, model: {name: mlp}, batch_size: 8, epochs: 2}\n"
    )
    (run,) = load_study(str(tmp_path / "small.yaml")).runs()
    records = [EpochRecord(epoch=n, metrics={"train/loss": 1.0 + n}) for n in range(2)]
    facts = [EpochFacts(seconds=2.0, stored_at_ms=0)] * 2
    home = Home(folder=tmp_path)
    key = stage_keys(run.config)[-1]
    Store(home.store).write(key, records=records, facts=facts, environment={}, state=None)
    page = Manuscript(home=home, out=tmp_path)
    given = (str(tmp_path / "small.yaml"), run.arm, "train/loss")
    assert [page.number(*given, place=n, scale=10) for n in (1, 2, 3)] == ["10", "20", "—"]
    assert page.first(*given, 1.5) == "1"
