import json
from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import pytest

from mixup_core.config.parts import leaves
from mixup_core.config.written_forms import flatten
from mixup_core.problem import PROBLEMS, problem_named
from sweeps.study.budget import Budget
from sweeps.study.space import Categorical, Integer, Parameter, Real
from tests.single_changes import changed
from tests.sweeps.reading.study_files import faults_of, refusals
from tests.sweeps.small_searches import STUDY, read

ALPHA = "mix.law: {beta: {log_uniform: [0.1, 32.0]}}"
SWITCH = "mix.switch_epoch: {int: [0, 20], step: 2}"

# Name of the case: what is replaced in the study, by what, and the one line it must give.
BAD = {
    "test objective": ("val/error", "test/error",
        "16: search.objective: a search must use validation metrics *, got 'test/error'"),
    "objective twice": ("val/error", "[val/error, val/error]",
        "16: *items of objective must be distinct*"),
    "points of nothing": ("points: 6", "points: null", "11: search: missing key 'points'"),
    "pruning after all seeds": ("points: 6", "points: 6\n  prune: {after: 3}",
        "16: search.prune: `after < number of seeds` must hold, got (after=3, seeds=3)."),
    "confirmed by a seed of the search": ("points: 6", "points: 6\n  confirm: {seeds: [2]}",
        "16: search.confirm: must not be seeds of the study, got [2]"),
    "no validation images": (", val_size: 200", "",
        "3: base.data.val_size: a search needs held-out images: set data.val_size or *"),
    "test images": ("val_size: 200", "val_size: 200, test: true",
        "3: base.data.test: data.test must be False in a search, got (data.test=True); *"),
    "grid beside it": ("seeds: 3", "seeds: 3\ngrid: {batch_size: [64, 128]}",
        "11: grid: a study cannot have both a grid and a search*"),
    "no arms": ("arms:\n  erm: {mix.law: erm}\n  uniform: {mix.law: {beta: 1.0}}\n", "",
        "8: search: a search needs `arms`*"),
    "step not dividing": ("step: 2", "step: 3",
        "14: *: step must divide high - low, so that high is a value, got (*, step=3)."),
    "field that says what is compared": (ALPHA,
        "objective: {filter: {teacher: erm, oracle: {categorical: [true, false]}}}",
        "13: search.space.objective.filter.oracle: cannot be searched: points with different *"),
    "field that is filled in": (ALPHA, "objective: {filter: {teacher: erm, teacher_key: a}}",
        "13: *.filter.teacher_key: cannot be set in a study file; name the teacher's arm"),
    "conditional without parent": (SWITCH,
        "mix.switch_epoch: {int: [0, 20], when: {model.name: mlp}}",
        "14: *switch_epoch: when: 'model.name' is not in the search space"),
    "alpha without a beta law": (ALPHA, "mix.law_after.alpha: {uniform: [1, 2]}",
        "13: *.mix.law_after.alpha: alpha needs mix.law_after to be beta or truncated, *"),
    "erm as a choice": (ALPHA, "mix.law: {categorical: [erm, midpoint]}",
        "13: *: erm has no field to search; remove it here and make it an arm"),
    "switch after the end": ("[0, 20]", "[0, 30]",
        "14: *: `mix.switch_epoch <= epochs` must hold, *switch_epoch=30*"),
    "empty space": (f"\n    {ALPHA}\n    {SWITCH}\n", " {}\n",
        "12: search.space: needs at least one path"),
    "condition on itself": (SWITCH,
        "mix.lam_scope: {categorical: [batch, sample], when: {mix.partner: dataset}}\n"
        "    mix.partner: {categorical: [dataset, permutation], when: {mix.lam_scope: batch}}",
        "14: search.space.mix.lam_scope: depends on itself through `when`"),
    "values that exclude each other": (SWITCH, f"{SWITCH}\n    epochs: {{categorical: [20, 10]}}",
        "14: *: `mix.switch_epoch <= epochs` must hold, got (mix.switch_epoch=20, epochs=10)."),
    "rule broken between the bounds": (SWITCH, "eval_every: {int: [1, 20]}",
        "14: *: eval_every must divide epochs, so that the last epoch is evaluated, "
        "got (eval_every=3, epochs=20)."),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD)
def test_invalid_searches_and_spaces_are_refused_with_line_path_and_rule(
    tmp_path: Path, case: str
) -> None:
    old, new, expected = BAD[case]
    assert old in STUDY
    (line,) = refusals(tmp_path, STUDY.lstrip("\n").replace(old, new, 1))
    assert fnmatchcase(line.replace("[", "("), expected.replace("[", "(")), line


def test_a_point_or_variant_that_could_not_be_confirmed_is_refused(tmp_path: Path) -> None:
    text = STUDY.replace("name: mlp", "name: narrow-resnet").replace(
        "val_size: 200", "val_size: 137"
    )
    space = "\n    batch_size: {categorical: [5, 4]}\n  confirm: {seeds: [7]}\n"
    text = text.replace(f"\n    {ALPHA}\n    {SWITCH}\n", space)
    (line,) = refusals(tmp_path, text, "base.batch_size=5")  # 1437 images are 359 * 4 + 1
    fault = "confirm: the confirmation runs also use the held-out data, and then BatchNorm"
    assert fault in line
    varied = (
        text.replace("[5, 4]", "[5, 10]")
        + """
sensitivity: {batch_size: [4]}
claims: [{says: a, source: b, that: {metric: test/error, less: [uniform, erm]}}]
"""
    )
    (line,) = refusals(tmp_path, varied, "base.batch_size=5")
    assert fault in line
    (line,) = refusals(tmp_path, varied, "base.batch_size=5", "search.confirm.seeds=[0]")
    assert "confirm: must not be seeds" in line, (
        "the claim has no fault, but for that of the search"
    )


def test_null_disables_a_part_of_a_search(tmp_path: Path) -> None:
    on = STUDY + "  prune: {after: 2}\n  budget: {hours: 2}\n  confirm: {seeds: [9]}\n"
    search = read(tmp_path, on).search
    strategy = search.strategy
    assert (strategy.prune_after, strategy.confirm_seeds) == (2, (9,))
    assert search.budget == Budget(hours=2)
    off = [f"search.{part}=null" for part in ("prune", "budget", "confirm")]
    assert read(tmp_path, on, *off).search == read(tmp_path).search


@pytest.mark.parametrize(
    "entry",
    [
        "optimizer.lr: {log_uniform: [1e-4, 0.1]}",
        "mix.switch_epoch: {categorical: [null, 5, 10]}",
        "mix.law_after: {categorical: [erm, midpoint, {beta: {uniform: [1, 2]}}]}\n"
        "    mix.switch_epoch: {int: [0, 20]}",
    ],
)
def test_every_field_of_a_run_can_be_searched(tmp_path: Path, entry: str) -> None:
    search = read(tmp_path, STUDY.replace(SWITCH, entry)).search
    configs = [search.config_of(values) for values in search.space.corners()]
    assert len(set(configs)) > 2


def test_a_space_is_read_with_its_branches(tmp_path: Path) -> None:
    text = STUDY.replace(
        f"    {ALPHA}\n",
        "    optimizer.momentum: {uniform: [0.0, 0.9], when: {optimizer.name: sgd}}\n"
        "    mix.law: {categorical: [midpoint, {beta: {log_uniform: [0.1, 32]}}]}\n"
        "    optimizer.name: {categorical: [adam, sgd]}\n",
    )
    search = read(tmp_path, text).search
    assert search.space.parameters == (
        Parameter(path="mix.law", distribution=Categorical(choices=("midpoint", "beta"))),
        Parameter(
            path="mix.law.alpha",
            distribution=Real(low=0.1, high=32.0, is_log=True),
            when={"mix.law": ("beta",)},
        ),
        Parameter(path="optimizer.name", distribution=Categorical(choices=("adam", "sgd"))),
        Parameter(
            path="optimizer.momentum",
            distribution=Real(low=0.0, high=0.9, is_log=False),
            when={"optimizer.name": ("sgd",)},
        ),
        Parameter(path="mix.switch_epoch", distribution=Integer(low=0, high=20, step=2)),
    )
    assert search.base.data.test is False


BASES: dict[str, dict[str, Any]] = {
    "images": {
        "data": {"name": "digits", "val_size": 100, "label_noise": 0.4, "noise_in_val": True},
        "model": {"name": "mlp"},
        "epochs": 4,
        "batch_size": 8,
    },
}
"""Base configuration of each problem whose defaults cannot be searched."""
SEARCHED = [name for name in PROBLEMS if problem_named(name).searching.objectives]


def refused(folder: Path, problem: str, space: dict[str, Any], objective: str) -> list[str]:
    """Return the refusals of a study that searches a space."""
    study = {
        "study": "s", "problem": problem, "base": BASES.get(problem, {}), "arms": {"erm": {}},
        "seeds": 2,
        "search": {"space": space, "points": 2, "objective": objective, "sampler": "random"},
    }  # fmt: skip
    return list(faults_of(folder, json.dumps(study)))


def fields_of_the_data(problem: str, base: Any, objective: str) -> Iterator[tuple[str, Any]]:
    """Yield the fields that change what an objective is measured on, each with such a value."""
    described = problem_named(problem)
    population = described.comparing.population
    reserved = {"seed", *described.reading.reserved}
    for path in leaves(type(base)).keys() - reserved:
        for value, other in changed(base, path):
            is_plain = value is None or isinstance(value, str | int | float)
            if is_plain and population(other, objective) != population(base, objective):
                yield path, value
                break


def base_of(folder: Path, problem: str) -> Any:
    text = {"study": "s", "problem": problem, "base": BASES.get(problem, {}), "seeds": 2}
    (base,) = read(folder, json.dumps(text)).arms.values()
    return base


@pytest.mark.parametrize("problem", SEARCHED)
def test_a_field_that_changes_the_data_cannot_be_searched(tmp_path: Path, problem: str) -> None:
    searching = problem_named(problem).searching
    (objective, *_), base = searching.objectives, base_of(tmp_path, problem)
    for path, value in fields_of_the_data(problem, base, objective):
        (refusal,) = refused(tmp_path, problem, {path: {"categorical": [value]}}, objective)
        assert f"search.space.{path}: cannot be searched: " in refusal
        if path not in searching.unsearchable:
            assert f"{objective} would be measured on other data, got " in refusal
            assert refusal.endswith(f"; set {path} in base instead")


@pytest.mark.parametrize(
    ("problem", "path"),
    [("support-vectors", "dimension"), ("rare-features", "patches"), ("two-layer", "data.classes")],
)
def test_the_refusal_names_the_field_with_both_values(
    tmp_path: Path, problem: str, path: str
) -> None:
    own = flatten(base_of(tmp_path, problem))[path]
    space = {path: {"categorical": [own, own + 2]}, "epochs": {"int": [5, 6]}}
    objective = problem_named(problem).searching.objectives[-1]
    (refusal,) = refused(tmp_path, problem, space, objective)
    assert f".{path}: cannot be searched: {objective} would be " in refusal
    assert f"got {own + 2}, but base has {own}; set {path} in base" in refusal


@pytest.mark.parametrize("problem", SEARCHED)
def test_a_search_needs_objectives_that_its_points_record(tmp_path: Path, problem: str) -> None:
    described, base = problem_named(problem), base_of(tmp_path, problem)
    space = {"epochs": {"categorical": [base.epochs]}}
    for objective in described.searching.objectives:
        lacks = described.measuring.lacks(base, objective, 1)
        text = f"a point (epochs={base.epochs}) does not record {objective}: {lacks}"
        found = refused(tmp_path, problem, space, objective)
        assert [line.partition("search.objective: ")[2] for line in found] == (
            [] if lacks is None else [text]
        )
