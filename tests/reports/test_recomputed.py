"""Tables and verdicts of the published runs, computed again with SciPy and statsmodels.

Tables are made with the present code from `runs.csv`; verdicts are the published ones. From the
project only facts are used: the bounds of a metric, and the number of items of which it is
a fraction.
"""

import gc
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from operator import le, lt
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from numpy.typing import NDArray
from scipy import optimize, stats
from statsmodels.stats.multitest import multipletests
from statsmodels.stats.proportion import proportion_confint

from docs.pages import published
from docs.pages.tables import published_studies, results_of
from reports.pages import build
from reports.pages.build import draft_report
from sweeps.study.search import name_of_confirmation
from sweeps.study.study import Study
from tests.bundled import bundled

FOLDERS = sorted(file.parent for file in published.PUBLISHED.glob("*/runs.csv"))
FEW = {
    "equal-budget", "label-noise-bound", "linear-views-gap", "quickstart", "quickstart-precision",
    "quickstart-until-decided", "readouts", "two-layer-linear",
}  # fmt: skip
"""Studies that `make test` computes again; `make long` does all."""
TABLES = [published.PUBLISHED / name for name in published_studies()]
Rows = Sequence[Mapping[str, str]]
Values = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True, slots=True)
class Facts:
    """Bounds of a metric, and the number of items of which a run's value is a fraction."""

    least: float
    most: float
    size: int | None


@dataclass(frozen=True, kw_only=True, slots=True)
class Stated:
    """A claim: its arms with factors, the allowed values, and whether their ends are included."""

    metric: str
    terms: Mapping[str, float]
    low: float
    high: float
    is_strict: bool


def selected(folders: Sequence[Path]) -> list[Any]:
    """Return folders as parameters; all but a few are marked `long`."""
    return [
        pytest.param(f, id=f.name, marks=[] if f.name in FEW else [pytest.mark.long])
        for f in folders
    ]


@pytest.fixture(scope="module", autouse=True)
def frozen_heap() -> Iterator[None]:
    """Exclude imported objects from `gc.collect`, which statsmodels calls for each family."""
    gc.freeze()
    yield
    gc.unfreeze()


@lru_cache(maxsize=8)
def rows_of(file: Path) -> Rows:
    return list(published.rows_of(file))


def study_of(source: Mapping[str, Any]) -> Study:
    """Return the bundled study of a published file, whose name may end in the kind of file."""
    return bundled(source["study"].removesuffix("-jpeg"))


def facts_of(study: Study, metric: str, arm: str) -> Facts:
    least, most = study.problem.metric(metric).bounds
    config = study.arms.get(arm)
    is_share = (least, most) == (0, 1)
    size = (
        study.problem.measuring.sample_size(config, metric)
        if config is not None and is_share
        else None
    )
    return Facts(least=least, most=most, size=size)


def by_seed(runs: Rows, arm: str, metric: str) -> dict[int, float]:
    confirmed = name_of_confirmation(arm)
    name = confirmed if any(run["arm"] == confirmed for run in runs) else arm
    return {
        int(run["seed"]): float(run[metric])
        for run in runs
        if run["arm"] == name and run.get(metric)
    }


def exact_interval(values: Values, facts: Facts, level: float) -> tuple[float, float]:
    """Return Clopper and Pearson's limits for the effective number of items."""
    n, width, tail = len(values), facts.most - facts.least, (1 - level) / 2
    share, sd = (values.mean() - facts.least) / width, values.std(ddof=1)
    things = float(n * (facts.size or 1))
    if sd > 1e-12 * np.abs(values).max() and 0 < share < 1:
        few = stats.t.ppf(1 - tail, n - 1)
        many = stats.t.ppf(1 - tail, things - 1) if facts.size else stats.norm.ppf(1 - tail)
        clustered = n * share * (1 - share) * (width / sd * many / few) ** 2
        things = min(clustered, things if facts.size else 1e8)
    low, high = proportion_confint(share * things, things, alpha=1 - level, method="beta")
    low, high = (0.0 if share <= 0 else low), (1.0 if share >= 1 else high)
    return facts.least + width * float(low), facts.least + width * float(high)


def interval_of(
    values: Mapping[str, Values], terms: Mapping[str, float], facts: Mapping[str, Facts],
    level: float, *, is_mean: bool = False,
) -> tuple[float, float] | None:  # fmt: skip
    """Return the interval of a weighted sum of arms over their common seeds.

    The interval of an arm's mean (`is_mean`) has no floor for the noise of counting.
    """
    total = sum((factor * values[arm] for arm, factor in terms.items()), np.zeros(1))
    n, mean, sd = len(total), float(total.mean()), float(total.std(ddof=1))
    scale = max(np.abs(factor * values[arm]).max() for arm, factor in terms.items())
    sd = sd if sd > 1e-12 * scale else 0.0
    mean = 0.0 if sd == 0 and abs(mean) <= 1e-12 * scale else mean
    is_equal_pair = n == 2 and sd == 0 and not is_mean
    sizes = [facts[arm].size for arm in terms]
    if all(sizes) and not is_equal_pair and not is_mean:
        size = min(size for size in sizes if size)
        share = abs(mean) if len(terms) > 1 else min(1.0, max(0.0, mean)) * (1 - min(1.0, mean))
        sd = max(sd, math.sqrt(max(share, 1 / size) / size))
    ends = [
        sorted((factor * facts[arm].least, factor * facts[arm].most))
        for arm, factor in terms.items()
    ]
    least, most = (sum(end[side] for end in ends) for side in (0, 1))

    def by_t(level: float) -> tuple[float, float]:
        half = stats.t.ppf((1 + level) / 2, n - 1) * sd / math.sqrt(n)
        return mean - half, mean + half

    usual = by_t(0.95)
    is_outside = usual[0] < least or usual[1] > most
    is_bounded = all(math.isfinite(f.least) and math.isfinite(f.most) for f in facts.values())
    if (sd == 0 or is_outside) and is_bounded and not is_equal_pair:
        each = 1 - (1 - level) / len(terms)
        sides = [
            sorted(factor * end for end in exact_interval(values[arm], facts[arm], each))
            for arm, factor in terms.items()
        ]
        return sum(side[0] for side in sides), sum(side[1] for side in sides)
    if sd == 0:
        return None
    low, high = by_t(level)
    return max(least, low), min(most, high)


def stated(that: Mapping[str, Any]) -> Stated:
    relation = next(key for key in that if key in _ALLOWED)
    sides, signs = that[relation], (1.0, -float(that.get("factor", 1)))
    middle = float(sides[1]) if isinstance(sides[1], int | float) else 0.0
    terms: dict[str, float] = {}
    for side, sign in zip(sides, signs, strict=True):
        pair = side if isinstance(side, list) else [side] if isinstance(side, str) else []
        for arm, factor in zip(pair, (sign, -sign), strict=False):
            terms[arm] = terms.get(arm, 0.0) + factor
    margin = float(that.get("margin", 0.0))
    has_low, has_high = _ALLOWED[relation]
    return Stated(
        metric=that["metric"],
        terms={arm: factor for arm, factor in terms.items() if factor},
        low=middle - margin if has_low else -math.inf,
        high=middle + margin if has_high else math.inf,
        is_strict="margin" not in that,
    )


_ALLOWED = {
    "less": (False, True),
    "greater": (True, False),
    "at_most": (False, True),
    "at_least": (True, False),
    "within": (True, True),
}
"""Two flags per relation: True if its allowed values are bounded below, and above."""


def decision(claim: Stated, interval: tuple[float, float] | None) -> str:
    if interval is None:
        return "undecided"
    low, high = interval
    inside, outside = (lt, le) if claim.is_strict else (le, lt)
    if inside(claim.low, low) and inside(high, claim.high):
        return "holds"
    return "fails" if outside(high, claim.low) or outside(claim.high, low) else "undecided"


@dataclass(frozen=True, kw_only=True, slots=True)
class Found:
    """Numbers of one claim, computed again."""

    verdict: str
    p: float
    value: float
    n: int
    claim: Stated
    values: Mapping[str, Values]
    facts: Mapping[str, Facts]


def judged(study: Study, claims: Sequence[Mapping[str, Any]], runs: Rows) -> list[Found | None]:
    """Return the verdicts after Holm's correction over claims with different tests.

    A verdict is None if runs.csv lacks the numbers of its claim.
    """
    levels: dict[Any, float] = {}
    parts: list[tuple[Any, Found | None]] = []
    for item in claims:
        that = item["that"]
        claim = stated(that)
        sign = 1 if sorted(claim.terms.items())[0][1] > 0 else -1
        test = (
            claim.metric,
            str(that.get("readout", study.readout)),
            tuple(sorted((arm, sign * factor) for arm, factor in claim.terms.items())),
            tuple(sorted(sign * end for end in (claim.low, claim.high) if math.isfinite(end))),
        )
        levels.setdefault(test, 1.0)
        found = {arm: by_seed(runs, arm, claim.metric) for arm in claim.terms}
        seeds = sorted(set.intersection(*(set(of) for of in found.values())))
        is_whole = all(len(found[arm]) >= len(study.seeds_of(arm)) for arm in found)
        is_in_runs = "readout" not in that and claim.metric in runs[0]
        if not is_in_runs or not is_whole or len(seeds) < 2:
            parts.append((test, None))
            continue
        values = {arm: np.array([of[seed] for seed in seeds]) for arm, of in found.items()}
        facts = {arm: facts_of(study, claim.metric, arm) for arm in claim.terms}
        p = level_of(claim, values, facts)
        levels[test] = p
        total = sum(factor * values[arm].mean() for arm, factor in claim.terms.items())
        made = Found(
            verdict="", p=p, value=float(total), n=len(seeds), claim=claim, values=values,
            facts=facts,
        )  # fmt: skip
        parts.append((test, made))
    tests = list(levels)
    adjusted = dict(
        zip(tests, multipletests([levels[t] for t in tests], method="holm")[1], strict=True)
    )
    return [made and _after_holm(made, float(adjusted[test])) for test, made in parts]


def _after_holm(made: Found, p: float) -> Found:
    widest = interval_of(made.values, made.claim.terms, made.facts, 1 - min(made.p * 1.01, 0.5))
    verdict = decision(made.claim, widest) if p <= 0.05 else "undecided"
    return replace(made, verdict=verdict, p=p)


def level_of(claim: Stated, values: Mapping[str, Values], facts: Mapping[str, Facts]) -> float:
    """Return the smallest error level at which the interval decides the claim."""

    def undecided(log_level: float) -> float:
        interval = interval_of(values, claim.terms, facts, 1 - math.exp(log_level))
        return 1.0 if decision(claim, interval) == "undecided" else -1.0

    least, most = math.log(1e-12), math.log(1 - 1e-6)
    if undecided(most) > 0:
        return 1.0
    if undecided(least) < 0:
        return 1e-12
    return math.exp(float(optimize.bisect(undecided, least, most, xtol=1e-5)))


@pytest.fixture
def made(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> tuple[Study, Rows, Rows]:
    """Return a published study with its runs and arms, as the present code writes them."""
    monkeypatch.setattr(build, "_drawn", lambda *_: ())
    monkeypatch.setattr(build, "render_page", lambda *_, **__: "")
    study = bundled(request.param.name)
    draft = draft_report(study, results_of(study), data_checksums={}, command="")
    draft.write(tmp_path)
    runs, arms = (rows_of(tmp_path / f"{name}.csv") for name in ("runs", "table"))
    return study, runs, arms


def each_table(test: Any) -> Any:
    return pytest.mark.parametrize("made", selected(TABLES), indirect=True)(test)


@each_table
def test_every_mean_sd_and_interval_of_a_table_follows_from_its_runs(
    made: tuple[Study, Rows, Rows],
) -> None:
    (study, runs, arms), checked = made, 0
    for row in arms:
        for name in row:
            metric = name.removesuffix("_mean")
            if metric == name or metric not in runs[0] or not row[name]:
                continue
            values = np.array(list(by_seed(runs, row["arm"], metric).values()))
            assert int(row["n"]) == len(values)
            assert float(row[name]) == pytest.approx(values.mean(), rel=1e-9, abs=1e-12)
            if len(values) < 2:
                continue
            assert float(row[f"{metric}_sd"]) == pytest.approx(
                values.std(ddof=1), rel=1e-9, abs=1e-12 * max(1.0, np.abs(values).max())
            )
            printed = tuple(float(row[f"{metric}_ci_{end}"] or "nan") for end in ("low", "high"))
            facts = {"a": facts_of(study, metric, row["arm"])}
            interval = interval_of({"a": values}, {"a": 1.0}, facts, 0.95, is_mean=True)
            expected = interval or (math.nan, math.nan)
            assert printed == pytest.approx(expected, rel=1e-6, abs=1e-9, nan_ok=True), row
            checked += 1
    assert checked or all(int(row["n"]) < 2 for row in arms)


@each_table
def test_every_difference_of_a_table_follows_from_its_runs(made: tuple[Study, Rows, Rows]) -> None:
    study, runs, arms = made
    metric = "test/error" if study.problem.name == "images" else study.headline
    for row in arms:
        if row["arm"] == row["baseline"] or not row["difference"]:
            continue
        ours, theirs = (by_seed(runs, row[side], metric) for side in ("arm", "baseline"))
        seeds = sorted(ours.keys() & theirs.keys())
        first, second = (np.array([of[seed] for seed in seeds]) for of in (ours, theirs))
        values, terms = {"a": first, "b": second}, {"a": 1.0, "b": -1.0}
        difference = float((first - second).mean())
        assert float(row["difference"]) == pytest.approx(difference, rel=1e-9, abs=1e-12)
        if not row["p"]:
            continue
        facts = {
            "a": facts_of(study, metric, row["arm"]),
            "b": facts_of(study, metric, row["baseline"]),
        }
        tests = int(row["comparisons"])
        interval = interval_of(values, terms, facts, 1 - 0.05 / tests)
        printed = tuple(float(row[f"difference_ci_{end}"]) for end in ("low", "high"))
        assert printed == pytest.approx(interval, rel=1e-6, abs=1e-9)
        strict = Stated(metric=metric, terms=terms, low=-math.inf, high=0.0, is_strict=True)
        p = min(1.0, tests * level_of(strict, values, facts))
        assert float(row["p"]) == pytest.approx(p, rel=1e-4, abs=1e-9)


JUDGED = [
    folder
    for folder in FOLDERS
    if (folder / "verdicts.csv").exists()
    and any("confidence" in row for row in rows_of(folder / "verdicts.csv"))
]
"""Reports with claims. In older ones, claims shared a family with the table; their claims are
judged again for the index of claims.
"""


@pytest.mark.parametrize("folder", selected(JUDGED))
def test_every_published_verdict_follows_from_its_runs(folder: Path) -> None:
    runs, rows = rows_of(folder / "runs.csv"), rows_of(folder / "verdicts.csv")
    source = published.read_report(folder).source
    study, claims = study_of(source), source.get("claims") or []
    found = judged(study, claims, runs)
    for row, claim, again in zip(rows, claims, found, strict=True):
        assert row["says"] == claim["says"]
        if again is None:
            continue
        assert int(row["n"]) == again.n
        assert float(row["value"]) == pytest.approx(again.value, rel=1e-9, abs=1e-12)
        interval = interval_of(
            again.values, again.claim.terms, again.facts, float(row["confidence"])
        )
        printed = float(row["low"]), float(row["high"])
        assert interval == pytest.approx(printed, rel=1e-6, abs=1e-9)
        if None not in found:
            assert row["verdict"] == again.verdict
            assert float(row["p"]) == pytest.approx(again.p, rel=1e-4, abs=1e-9)


LOOKED = [folder for folder in FOLDERS if (folder / "looks.csv").exists()]


@pytest.mark.parametrize("folder", selected(LOOKED))
def test_every_published_look_follows_from_its_runs(folder: Path) -> None:
    """The levels of the looks have their own tests; here they are read from the file."""
    runs, rows = rows_of(folder / "runs.csv"), rows_of(folder / "looks.csv")
    source = published.read_report(folder).source
    study = study_of(source)
    claims = {claim["says"]: stated(claim["that"]) for claim in source["claims"]}
    least, most = source["seeds"]["at_least"], source["seeds"]["at_most"]
    sizes = sorted({int(row["seeds"]) for row in rows})
    assert sizes[0] == least
    assert sizes[-1] <= most
    for row in rows:
        claim, n = claims[row["says"]], int(row["seeds"])
        found = {arm: by_seed(runs, arm, claim.metric) for arm in claim.terms}
        values = {arm: np.array([of[seed] for seed in range(n)]) for arm, of in found.items()}
        total = sum(factor * values[arm].mean() for arm, factor in claim.terms.items())
        assert float(row["value"]) == pytest.approx(total, rel=1e-9, abs=1e-12)
        facts = {arm: facts_of(study, claim.metric, arm) for arm in claim.terms}
        interval = interval_of(values, claim.terms, facts, float(row["confidence"]))
        assert (float(row["low"]), float(row["high"])) == pytest.approx(interval, rel=1e-6)
        is_decided = float(row["p"]) <= 0.05
        assert (row["result"] in {"holds", "fails", "equivalent"}) == is_decided
        if row["result"] in {"holds", "fails"}:
            assert decision(claim, interval) == row["result"]
    for arm in {arm for claim in claims.values() for arm in claim.terms}:
        last = max(int(row["seeds"]) for row in rows if arm in claims[row["says"]].terms)
        assert len(by_seed(runs, arm, study.headline)) == last, "no seed that no claim needed"


def test_every_verdict_in_the_claims_index_follows_from_the_published_runs() -> None:
    checked = 0
    for block in (published.PUBLISHED / "claims.md").read_text(encoding="utf-8").split("\n## ")[1:]:
        name, _, rest = block.partition("\n")
        if "\nReport: [" not in rest:
            continue
        folder = published.PUBLISHED / rest.partition("](")[2].partition("/)")[0]
        runs = rows_of(folder / "runs.csv")
        claims = yaml.safe_load(bundled(name).source).get("claims") or []
        lines = [line for line in rest.splitlines() if line.startswith("| ")][2:]
        again = judged(bundled(name), claims, runs)
        for line, found in zip(lines[: len(claims)], again, strict=True):
            cells = [cell.strip() for cell in line.split(" | ")]
            if found is None or cells[2] not in {"holds", "fails", "undecided"}:
                continue
            assert (cells[2], int(cells[4])) == (found.verdict, found.n), line
            checked += 1
    assert checked > 100
