"""Tables of the published studies, made again from their `runs.csv`.

    python -m docs.pages.tables STUDY ...

Prints the main table of each study with the present code. `make docs` writes all of them into one
page. Tables of predictions, learning curves and searches need more than `runs.csv`: run the study
to have its whole report.
"""

import sys
from collections.abc import Iterator
from pathlib import Path

from docs.pages.published import PUBLISHED, provenance_of, rows_of
from mixup_core.records import EpochRecord, Records
from mixup_core.store.manifests import EpochFacts, Facts, Stage
from reports.pages.build import report_table
from sweeps.reading.study_file import bundled_names, load_study
from sweeps.state.results import RunResult
from sweeps.study.study import Study


def published_studies(published: Path = PUBLISHED) -> Iterator[str]:
    """Yield the bundled studies whose main table follows from `runs.csv` alone."""
    for name in bundled_names():
        if (published / name / "runs.csv").is_file() and load_study(name).search is None:
            yield name


def results_of(study: Study, published: Path = PUBLISHED) -> tuple[RunResult, ...]:
    """Return the results of a published study; each epoch has the values in `runs.csv`.

    These are the values of the study's read-out, so that every read-out finds them again.
    """
    folder = published / study.name
    told = provenance_of(folder)
    facts = EpochFacts(seconds=0.0, stored_at_ms=told["last_epoch_stored_at_ms"])
    runs = {(run.arm, run.seed): run for run in study.runs()}
    found = []
    for row in rows_of(folder / "runs.csv"):
        run = runs.get((row["arm"], int(row["seed"])))
        if run is None or row["outcome"] != "complete":
            continue
        metrics = {name: float(row[name]) for name in row if "/" in name and row[name]}
        epochs = range(run.config.epochs)
        stage = Stage(
            key=run.key,
            records=Records(EpochRecord(epoch=epoch, metrics=metrics) for epoch in epochs),
            facts=Facts(facts for _ in epochs),
            environment=told["environments"][0],
            state=None,
        )
        found.append(RunResult(run=run, stage=stage, failure=None))
    return tuple(found)


def main_table(name: str) -> str:
    """Return the main table of a published study as Markdown."""
    study = load_study(name)
    results = results_of(study)
    return f"## {name}\n\n{report_table(study, results).markdown()}\n"


def all_tables() -> str:
    """Return the page with the table of every published study as Markdown."""
    return "\n".join(map(main_table, published_studies()))


if __name__ == "__main__":
    sys.stdout.write("\n".join(map(main_table, sys.argv[1:])))
