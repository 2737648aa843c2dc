import math
import random
from itertools import pairwise, product
from operator import mul
from pathlib import Path
from typing import Any

import pytest

from mixup_core.config.written_forms import flatten
from sweeps.study.claims import Claim, StatedComparison
from sweeps.study.readouts import Averaged, BestValidation, EarlyStopping, Last, MeanOfLast
from tests.sweeps.reading.study_files import ARMS, read, refusals

SOURCE = "source: arXiv:2210.13512, table 1"
CLAIM = f"- says: Mixup wins\n  {SOURCE}\n  that: {{less: [uniform, erm], metric: test/error}}\n"


AVERAGES = ARMS.replace("erm: {", "erm: {averaging: {ema: 0.9}, ").replace(
    "uniform: {mix.law: {beta: 1}",
    "uniform: {mix.law: {beta: 1}, averaging: {ema: 0.9}}\n"
    "  slower: {mix.law: {beta: 1}, averaging: {ema: 0.99}",
)


def test_a_study_file_sets_baseline_readout_equivalence_and_references(tmp_path: Path) -> None:
    study = read(
        tmp_path,
        ARMS + "baseline: uniform\nreadout: {mean_of_last: 3}\nequivalence: 0.002\n"
        "references: {erm: {test/error: 0.078, test/nll: 0.4}}\n"
        "untrained: {AlignMix: {test/error: 0.03}}\n"
        "differs: [a new optimizer for each run]\n",
    )
    assert study.untrained == {"AlignMix": {"test/error": 0.03}}
    assert study.baseline == "uniform"
    assert study.readout == MeanOfLast(evaluations=3)
    assert study.equivalence == 0.002
    assert study.references == {"erm": {"test/error": 0.078, "test/nll": 0.4}}
    assert study.differs == ("a new optimizer for each run",)


def test_the_default_baseline_is_erm_or_the_first_arm(tmp_path: Path) -> None:
    study = read(tmp_path, ARMS)
    assert (study.baseline, study.readout, study.claims) == ("erm", Last(), ())
    assert (study.equivalence, study.references) == (None, {})
    grid = "grid: {optimizer.lr: [0.1, 0.2]}\n"
    assert read(tmp_path, ARMS + grid).baseline == "erm lr=0.1"
    swapped = ARMS.replace("erm:", "plain:").replace("uniform:", "erm:")
    assert read(tmp_path, swapped + grid).baseline == "erm lr=0.1"
    assert read(tmp_path, ARMS.replace("erm:", "plain:")).baseline == "plain"
    assert read(tmp_path, AVERAGES, "readout=averaged").readout == Averaged()


def test_claims_are_read_as_relations_of_arms_and_numbers(tmp_path: Path) -> None:
    more = (
        f"- {{says: b, {SOURCE.replace(', table', ' table')}, "
        "that: {within: [erm, 0.078], margin: 0.002, metric: test/error_averaged}}\n"
    )
    averaged = ARMS.replace("base: {", "base: {averaging: {ema: 0.9}, ", 1)
    first, second = read(tmp_path, f"{averaged}claims:\n{CLAIM}{more}").claims
    assert first == Claim(
        says="Mixup wins", source="arXiv:2210.13512, table 1",
        that=StatedComparison(metric="test/error", less=("uniform", "erm")),
    )  # fmt: skip
    that = second.that
    assert (that.relation, that.left, that.right) == ("within", "erm", 0.078)
    assert (that.margin, that.metric) == (0.002, "test/error_averaged")


def claim_about(that: str) -> str:
    return f"claims:\n- {{says: a, source: b, that: {{{that}}}}}\n"


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("grid: {optimizer.lr: [0.1, 0.2]}\nbaseline: erm\n",
         "8: baseline: names no arm of the study, got 'erm'; its grid points are erm lr=0.1, "
         "erm lr=0.2"),
        ("baseline: emr\n",
         "7: baseline: names no arm of the study, got 'emr' (did you mean erm?)"),
        ("references: {emr: {test/error: 1}}\n",
         "7: references.emr: names no arm of the study, got 'emr' (did you mean erm?)"),
        ("references: {erm: {test/eror: 1}}\n",
         "7: references.erm.test/eror: names no metric of the problem, got 'test/eror' (did you "
         "mean "),
        (f"claims:\n{CLAIM}".replace("uniform, erm", "uniform, emr"),
         "8: claims[0]: names no arm of the study, got 'emr' (did you mean erm?)"),
        ("headline: test/acuracy\n", "7: headline: names no metric of the problem"),
        ("headline: val/error\n", "7: headline: arm erm does not record val/error: the run"),
        ("headline: predicted/auroc\n", "predicted/auroc is computed from predictions"),
        (claim_about("less: [uniform, erm], metric: val/error"), "set data.val_size"),
        (claim_about("less: [erm, 0.5], metric: train/kept_fraction"), "set objective to filter"),
        (claim_about("less: [uniform, erm], metric: train/loss_averaged"), "names no metric"),
        ("sensitivity: {lr_schedule: [cosine]}\n", "7: sensitivity: the study has no claims"),
        (f"claims:\n{CLAIM}sensitivity: {{mix.switch_epoch: [99]}}\n",
         "11: sensitivity.mix.switch_epoch[0]: uniform: `mix.switch_epoch <= epochs` must hold"),
    ],
)  # fmt: skip
def test_sections_that_do_not_fit_the_arms_are_refused_at_their_line(
    tmp_path: Path, text: str, fault: str
) -> None:
    (line,) = refusals(tmp_path, ARMS + text)
    assert fault in line


def test_an_ensemble_has_a_temperature_only_if_its_networks_share_validation_images(
    tmp_path: Path,
) -> None:
    claimed = "less: [uniform, erm], metric: predicted/scaled_nll, together: [erm], networks: 2"
    folds = ARMS.replace("base: {", "base: {data: {name: digits, folds: 5}, ")
    (line,) = refusals(tmp_path, folds + claim_about(claimed))
    assert "each seed holds out other validation images" in line
    assert read(tmp_path, folds + claim_about(claimed), "seeds=[2, 7]").claims
    assert read(tmp_path, folds + claim_about(claimed.replace("scaled_nll", "brier"))).claims


def test_a_claim_about_arms_on_different_data_is_refused(tmp_path: Path) -> None:
    arms = ARMS.replace("erm:", "erm: {data.num_train: 50}\n  plain:")
    assert read(tmp_path, f"{arms}claims:\n{CLAIM}").claims  # the test images are the same
    classes = (
        "study: classes\nproblem: two-layer\nbase: {}\narms: {erm: {}}\n"
        "grid: {data.classes: [2, 3]}\nseeds: 2\nclaims:\n"
        f"- says: More\n  {SOURCE}\n"
        "  that: {less: [erm classes=3, erm classes=2], metric: features/one}\n"
        f"- says: Few\n  {SOURCE}\n  that: {{less: [erm classes=3, 0.1], metric: features/one}}\n"
    )
    (refusal,) = refusals(tmp_path, classes)
    assert "claims[0]: erm classes=3 and erm classes=2 are measured on different data" in refusal
    noisy = ARMS.replace("epochs: 4", "data: {val_size: 100, label_noise: 0.4}, epochs: 4")
    noisy = noisy.replace("uniform: {", "uniform: {data.noise_in_val: true, ")
    on_val = CLAIM.replace("test/error", "val/error")
    (refusal,) = refusals(tmp_path, f"{noisy}claims:\n{CLAIM}{on_val}")
    assert "claims[1]: uniform and erm are measured on different data" in refusal


HELD_OUT = ARMS.replace("epochs: 4", "data: {val_size: 100}, epochs: 4")


SEARCH = HELD_OUT + (
    "search:\n  space: {optimizer.lr: {uniform: [0.1, 1]}}\n  points: 2\n  objective: val/error\n"
)
CONFIRMED = SEARCH + "  confirm: {seeds: [7]}\n"


def test_a_search_has_the_headline_of_its_confirmation_once_it_is_measured(tmp_path: Path) -> None:
    study = read(tmp_path, f"{CONFIRMED}headline: test/nll\nclaims:\n{CLAIM}")
    assert (study.headline, study.judged().headline) == ("val/error", "test/nll")
    assert study.judged().seeds == (7,)


@pytest.mark.parametrize("written", ["best_validation", "{early_stopping: 2}"])
def test_a_readout_by_validation_needs_validation_and_test_images(
    tmp_path: Path, written: str
) -> None:
    readout = f"readout: {written}\n"
    assert read(tmp_path, HELD_OUT + readout).readout in {
        BestValidation(), EarlyStopping(patience=2),
    }  # fmt: skip
    (line,) = refusals(tmp_path, ARMS + readout)
    assert "needs validation images, and arm erm has none; set data.val_size" in line
    (line,) = refusals(
        tmp_path, HELD_OUT.replace("val_size: 100", "val_size: 100, test: false") + readout
    )
    assert line.endswith("needs test images, and arm erm has none")


SCORES = ARMS.replace("base: {", "base: {probes: [scores], ", 1)


def test_a_study_can_set_its_headline_metric(tmp_path: Path) -> None:
    assert read(tmp_path, ARMS).headline == "test/error"
    assert read(tmp_path, ARMS, "headline=train/loss").headline == "train/loss"
    assert read(tmp_path, f"{SCORES}headline: test/auroc\n").headline == "test/auroc"


def test_a_study_whose_arms_record_no_default_headline_is_refused(tmp_path: Path) -> None:
    (line,) = refusals(tmp_path, ARMS, "base.data.test=false")
    assert "headline: no arm records test/error, by which arms are compared" in line
    assert read(tmp_path, f"{ARMS}headline: train/loss\n", "base.data.test=false")


def test_claims_with_factors_and_nested_differences_are_settled_as_by_brute_force() -> None:
    """Random bounds, sides, factors and margins, often exactly at a bound; by brute force."""
    for seed in range(150):
        rng = random.Random(seed)
        least, most = rng.choice([(0.0, 1.0), (0.0, 2.0), (-1.0, 1.0), (0.3, 0.7), (1.0, math.inf),
                                  (0.0, math.inf), (-math.inf, math.inf)])  # fmt: skip
        relation = rng.choice(["less", "greater", "at_least", "at_most", "within"])
        ends = [end for end in (least, most) if math.isfinite(end)] or [0.0]
        margin = None if relation in {"less", "greater"} else rng.choice([0.1, 0.2, 1.0, 2.0, 4.0])
        shifts = [0.0, 0.05, 0.5] + ([] if margin is None else [margin, margin / 2])
        number = rng.choice(ends) + rng.choice((-1, 1)) * rng.choice(shifts)
        left = rng.choice(["a", ("a", "b")])
        right = rng.choice([number, "c", ("c", "d"), ("a", "c"), ("b", "a")])
        factor = rng.choice([None, 2.0, 1000.0]) if right == "c" else None
        sides: dict[str, Any] = {relation: (left, right)}
        that = StatedComparison(metric="any", margin=margin, factor=factor, **sides)
        ends = max(least, -1e7), min(most, 1e7)  # 1e7 stands for no bound
        found = [
            math.fsum(map(mul, that.terms.values(), values))
            for values in product(ends, repeat=len(that.terms))
        ]
        low, high = min(found), max(found)
        edges = sorted({low, high, *(end for end in that.allowed if low < end < high)})
        possible = {
            that.judge((3 * start + end) / 4, (start + 3 * end) / 4)
            for start, end in pairwise(edges)
            if end - start > 1e-8
        }
        settled = that.settled(least, most)
        assert (settled is None) == ({"holds", "fails"} <= possible), (that, settled, possible)


TWINS = ARMS + (
    "  at-the-end: {mix.law: {beta: 1}, mix.switch_epoch: 4}\n"
    "  seldom: {mix.law: {beta: 1}, eval_every: 4}\n"
    "  measured: {mix.law: {beta: 1}, probes: [weight-norm]}\n"
    "  mean-kept: {mix.law: {beta: 1}, averaging: {ema: 0.9}}\n"
    "  cut: {mix.law: erm, mix.operation: cutmix}\n"
)


@pytest.mark.parametrize(
    ("that", "is_refused"),
    [
        ("less: [uniform, at-the-end], metric: test/error", True),
        ("within: [uniform, seldom], margin: 0.01, metric: test/error", True),
        ("greater: [measured, mean-kept], metric: predicted/brier", True),
        ("less: [cut, erm], metric: test/nll", True),
        ("less: [[uniform, erm], [at-the-end, cut]], metric: test/error", True),
        ("less: [[uniform, at-the-end], erm], metric: test/error", True),  # 0 is never above it
        ("less: [[uniform, erm], [cut, seldom]], metric: test/error", False),  # twice uniform - erm
        ("less: [uniform, cut], metric: test/error", False),
        ("less: [seldom, uniform], metric: test/error, readout: rise", True),  # too few records
    ],
)
def test_a_claim_about_arms_with_equal_computations_is_refused(
    tmp_path: Path, that: str, *, is_refused: bool
) -> None:
    text = TWINS + claim_about(that)
    if is_refused:
        (line,) = refusals(tmp_path, text)
        assert "cannot" in line or "needs 2" in line
    else:
        assert read(tmp_path, text).claims


@pytest.mark.parametrize("metric", ["test/error", "predicted/accuracy"])
def test_arms_with_other_averages_are_compared_by_averaged_weights_only(
    tmp_path: Path, metric: str
) -> None:
    claim = (
        f"claims:\n- {{says: a, source: b, that: {{less: [uniform, slower], metric: {metric}}}}}\n"
    )
    assert read(tmp_path, f"{AVERAGES}readout: averaged\n{claim}").claims
    (line,) = refusals(tmp_path, AVERAGES + claim)
    assert "uniform and slower have equal results at every seed" in line


@pytest.mark.parametrize(
    ("text", "place", "reason"),
    [
        (HELD_OUT + "readout: best_validation\nheadline: val/error\n",
         "headline", "so val/error would be too good for every arm"),
        (ARMS + 'untrained: {"a\\e[31mb": {test/error: 0.1}}\n', "untrained", "without control"),
        (f"{SEARCH}claims:\n{CLAIM}", "claims[0]", "a confirmation of the search does; set"),
        (SEARCH + "headline: test/error\n", "headline", "set search.confirm"),
        (ARMS + "references: {erm: {test/error: 12}}\n", "references.erm.test/error",
         "must be in [0, 1], got 12; a study file has fractions: write 0.1 for 10 %"),
        (ARMS + "untrained: {a: {test/nll: -1}}\n", "untrained.a.test/nll", "must be in [0, inf]"),
        (ARMS + "equivalence: 1\n", "equivalence", "must be below 1, the largest difference"),
        (CONFIRMED + "headline: val/error\n", "headline", "the confirmation of the search does"),
    ],
)  # fmt: skip
def test_readouts_headlines_and_names_that_no_table_can_show_are_refused(
    tmp_path: Path, text: str, place: str, reason: str
) -> None:
    assert any(place in line and reason in line for line in refusals(tmp_path, text))


def test_each_sensitivity_value_is_trained_only_for_arms_of_claims(tmp_path: Path) -> None:
    arms = ARMS.replace("erm:", "midpoint: {mix.law: midpoint}\n  erm:")
    study = read(
        tmp_path,
        f"{arms}claims:\n{CLAIM}sensitivity: {{lr_schedule: [constant, cosine], "
        "readout: [{mean_of_last: 3}]}\n",
    )
    assert study.beside == ("uniform lr_schedule=cosine", "erm lr_schedule=cosine")
    schedule, readout = study.variants
    assert (schedule.label, schedule.readout) == ("lr_schedule=cosine", None)
    assert schedule.arms == {"uniform": study.beside[0], "erm": study.beside[1]}
    assert flatten(study.arms[study.beside[0]])["lr_schedule"] == "cosine"
    assert readout.readout == MeanOfLast(evaluations=3)
    assert readout.arms == {"uniform": "uniform", "erm": "erm"}
    assert list(study.primary().arms) == [arm for arm in study.arms if arm not in study.beside]
    under = study.under(schedule)
    assert list(under.arms) == ["uniform", "erm"]
    assert under.claims == study.claims
    assert [run.key for run in under.runs_of("erm")] == [
        run.key for run in study.runs_of(study.beside[1])
    ]


@pytest.mark.parametrize(
    ("claims", "values", "fault"),
    [
        (f"claims:\n{CLAIM}", "mix.law: [erm]", "uniform and erm have equal results"),
        (f"claims:\n{CLAIM}", "data.test: [false]", "arm uniform records no test/error"),
        (f"claims:\n{CLAIM}", "readout: [averaged]", "the run averages no weights"),
        (f"claims:\n{CLAIM}", "data.num_train: [4]", "batch_size <= training images"),
        (f"claims:\n{CLAIM.replace('uniform', 'taught')}", "data.pool: [2]",
         "cannot learn from 'erm': a run and its teacher must have the same data.pool"),
    ],
)  # fmt: skip
def test_sensitivity_that_no_run_can_answer_is_refused(
    tmp_path: Path, claims: str, values: str, fault: str
) -> None:
    taught = "  taught: {objective: {filter: {teacher: erm}}, mix.law: midpoint}\n"
    lines = refusals(tmp_path, f"{ARMS}{taught}{claims}sensitivity: {{{values}}}\n")
    assert any(fault in line for line in lines), lines
