"""Examples of the documentation: they say what the code does, and print what it prints."""

import csv
import re
import statistics
from collections.abc import Iterator
from pathlib import Path

import pytest
import scipy.stats
import yaml

from mixup_core.config.written_forms import flatten
from mixup_core.problem import problem_named
from reports.numbers.judging import judge
from sweeps.reading.study_file import study_of
from sweeps.reading.tree_paths import config_paths
from tests.bundled import bundled
from tests.conftest import CommandLines

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
BASE = {"epochs": 10, "batch_size": 50}


def _table(page: str, head: str) -> Iterator[list[str]]:
    """Yield the cells of each row of the table of a page whose head begins with a text."""
    lines = (DOCS / page).read_text().split(head, 1)[1].splitlines()[2:]
    for line in lines:
        if not line.startswith("|"):
            return
        yield [cell.strip() for cell in line.strip("|").split("|")]


WORDS = list(_table("how-to/paper-words.md", "| in papers |"))


@pytest.mark.parametrize(("words", "fields", "arm"), WORDS, ids=[row[0] for row in WORDS])
def test_a_word_of_papers_is_the_field_that_its_arm_sets(words: str, fields: str, arm: str) -> None:
    settings = yaml.safe_load(arm.strip("`"))
    study = {"study": "words", "base": BASE, "seeds": 1}
    changed = flatten(study_of(study | {"arms": {"word": settings}}).arms["word"])
    (plain,) = study_of(study | {"arms": {"erm": {"mix.law": "erm"}}}).arms.values()
    for path in re.findall(r"`([^`]+)`", fields):
        assert path in config_paths(problem_named("images")).leaves
        assert any(path == key or path.startswith(f"{key}.") or key.startswith(path)
                   for key in settings), path  # fmt: skip
        usual = flatten(plain).get(path)
        assert changed[path] != usual or settings == {"mix.law": "erm"}, path


def _rows(file: str) -> list[dict[str, str]]:
    with (ROOT / "reports" / "published" / "quickstart" / file).open() as stream:
        return list(csv.DictReader(stream))


def test_the_example_of_a_verdict_has_the_numbers_of_the_published_study() -> None:
    values: dict[str, dict[int, float]] = {}
    for row in _rows("runs.csv"):
        values.setdefault(row["arm"], {})[int(row["seed"])] = float(row["test/error"])
    text = (DOCS / "explanation" / "statistics.md").read_text()
    (example,) = re.findall(r"### An example: from a claim.*?(?=\n### )", text, re.DOTALL)
    told = " ".join(example.split())
    rows = _table("explanation/statistics.md", "| seed | 0 | 1 |")
    shown = {name: numbers for name, *numbers in rows}
    uniform, erm = ([values[arm][seed] for seed in range(5)] for arm in ("uniform", "erm"))
    differences = [a - b for a, b in zip(uniform, erm, strict=True)]
    for name, numbers in (("uniform", uniform), ("erm", erm), ("uniform minus erm", differences)):
        assert shown[name] == [f"{100 * number:.2f}" for number in numbers]
    mean, sd = (100 * f(differences) for f in (statistics.fmean, statistics.stdev))
    error = sd / 5**0.5
    test = scipy.stats.ttest_rel(uniform, erm)
    quantile = scipy.stats.t.ppf(1 - 0.025 / 2, 4)
    (row,) = (row for row in _rows("table.csv") if row["arm"] == "uniform")
    for part in (
        f"last row is {mean:.3f} points, and its standard deviation {sd:.3f} points",
        f"error is {sd:.3f} / sqrt(5) = {error:.3f} points",
        f"t = {mean:.3f} / {error:.3f} = {test.statistic:.2f}",
        f"so p = {test.pvalue:.3f}, not adjusted",
        f"multiplied by 2: {float(row['p_adjusted']):.3f}.",
        f"{mean:.3f} ± {quantile:.3f} · {error:.3f}",
        _interval(float(row["difference_low"]), float(row["difference_high"])),
    ):
        assert part in told, part
    (verdict,) = judge(bundled("quickstart"), lambda claim: values)
    assert verdict.verdict == "holds"
    assert f"{_interval(verdict.low, verdict.high)}, with p = {verdict.p:.3f}" in told
    assert f'"{verdict.claim.says}: {mean:.2f} points' in told
    (row,) = (row for row in _rows("table.csv") if row["arm"] == "midpoint")
    between = _interval(float(row["difference_low"]), float(row["difference_high"]))
    assert f"For midpoint, the table's interval is {between}." in told


def _interval(low: float | None, high: float | None) -> str:
    return f"[{100 * low:.2f}, {100 * high:.2f}]"


def _outputs(page: str) -> Iterator[tuple[str, str]]:
    """Yield each command of a page and the output printed below it, which may be empty."""
    for block in re.findall(r"```console\n(.*?)```", (DOCS / page).read_text(), re.DOTALL):
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, _, output = part.partition("\n")
            yield command, output


def _masked(text: str) -> str:
    """Return an output without what depends on the machine, the time or a version."""
    text = re.sub(r"\b[0-9a-f]{32}\b", "KEY", text)
    text = re.sub(r" on [\w.-]+, stored [\d-]+ [\d:]+ UTC", " on HOST, stored TIME", text)
    text = re.sub(r"[\d-]+ [\d:]+ UTC  (epoch \d+) .*", r"TIME  \1 SECONDS, METRICS", text)
    return re.sub(r"[\d.]+ ([MG]B)", r"N \1", text)


@pytest.mark.slow
@pytest.mark.long
def test_the_printed_output_of_commands_equals_the_output_of_the_code(
    command_line: CommandLines,
) -> None:
    mixsweep = command_line()
    found = list(_outputs("how-to/debug.md"))
    assert {command.split()[1] for command, output in found if output} == {"plan", "status"}
    for command, output in found:
        words = command.split()[1:]
        if words[0] == "run":
            words += ["--engine", "inline"]
        printed = mixsweep(*words).stdout
        if output:
            assert _masked(printed) == _masked(output)
