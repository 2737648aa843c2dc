"""The table of ratios has the newest measurements, and no bench that was not run."""

import json
from pathlib import Path

from tests.bench.ratios import write_ratios

MADE = {"code": None, "versions": {"torch": "2"}, "cpus": 2, "device": "x", "load_average": 1.0,
        "date": "2026-11-25T00:00:00"}  # fmt: skip


def finding(ratio: float, title: str = "") -> str:
    figures = {"wall_ratio_plain_to_mixsweep": {"n": 3, "median": ratio, "min": 2.0, "max": 30.0},
               "overhead_ratio_plain_to_mixsweep": {"n": 3, "median": 70.0, "min": 36, "max": 84},
               "wall_seconds_per_run": {"mixsweep": {"n": 3, "median": 0.2}}, "slots": 2,
               "training_seconds_per_run": {"mixsweep": {"median": 0.32}}}  # fmt: skip
    return json.dumps({"name": "overhead", "title": title, "figures": figures, "made_with": MADE})


def test_the_newest_finding_of_each_bench_has_its_ratios_and_limits(tmp_path: Path) -> None:
    lines = [finding(9.0), finding(17.0, "30 runs, plain Ray Tune with MLflow's callback")]
    (tmp_path / "bench.jsonl").write_text("\n".join(lines) + "\n")
    text = write_ratios(tmp_path).read_text()
    assert "plain Ray Tune with MLflow callback / mixsweep" in text
    assert "| 17 " in text
    assert "| 9 " not in text
    assert "| 0.8 " in text, "0.32 s of training in 2 x 0.2 s of slots"
    assert "bare loops |" not in text


def test_without_findings_the_table_is_empty(tmp_path: Path) -> None:
    assert write_ratios(tmp_path).read_text().count("\n|") == 2
