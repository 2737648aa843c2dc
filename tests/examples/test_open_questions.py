"""The published verdicts of the open questions follow from their runs, and reports print them."""

from pathlib import Path

import pytest

from reports.numbers.judging import judge
from sweeps.reading.study_file import load_study
from tests.reports.test_recomputed import by_seed, rows_of

EXAMPLES = Path(__file__).parents[2] / "examples"
QUESTIONS = sorted(file.parent for file in EXAMPLES.glob("*/results"))


@pytest.mark.parametrize("folder", QUESTIONS, ids=lambda folder: folder.name)
def test_verdicts_follow_from_the_runs(folder: Path) -> None:
    runs, told = (rows_of(folder / "results" / f"{name}.csv") for name in ("runs", "verdicts"))
    study = load_study(str(folder / "study.yaml"))
    values = {arm: by_seed(runs, arm, "test/error") for arm in study.arms}
    for row, verdict in zip(told, judge(study, lambda claim: values), strict=True):
        assert (row["says"], row["verdict"]) == (verdict.claim.says, verdict.verdict)
        for name in ("value", "low", "high", "n", "p", "confidence"):
            assert float(row[name]) == pytest.approx(getattr(verdict, name)), name
        assert row["stated"] == "before the runs"


def test_reports_print_the_numbers_of_their_verdicts() -> None:
    for folder in QUESTIONS:
        text = (folder / "README.md").read_text(encoding="utf-8")
        for row in rows_of(folder / "results" / "verdicts.csv"):
            scale = 1 if "variance" in row["says"] else 100
            ends = (f"{scale * float(row[name]):.2f}" for name in ("value", "low", "high"))
            value, low, high = (end.replace("-0.00", "0.00") for end in ends)
            assert f"{value} [{low}, {high}]" in text, (folder.name, row["says"])
