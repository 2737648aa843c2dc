from fnmatch import fnmatchcase
from pathlib import Path

import jsonschema  # type: ignore[import-untyped]
import pytest
import yaml
from searching import STUDY, read

from sweeps.search import Budget, Categorical, Integer, Parameter, Real
from sweeps.study_file import StudyError, study_schema

ALPHA = "mix.law: {beta: {log_uniform: [0.1, 32.0]}}"
SWITCH = "mix.switch_epoch: {int: [0, 20], step: 2}"

# Name of the case: what is replaced in the study, by what, and the one line it must give.
BAD = {
    "low above high": (
        "[0.1, 32.0]",
        "[32.0, 0.1]",
        "13: search.space.mix.law.alpha: `low < high` must hold, got *",
    ),
    "low equals high": ("[0, 20]", "[20, 20]", "14: *: `low < high` must hold, got *"),
    "log of zero": (
        "[0.1, 32.0]",
        "[0, 32.0]",
        "13: *: `low > 0` must hold for log_uniform, got (low=0.0).",
    ),
    "log of a negative number": ("[0.1, 32.0]", "[-1, 32.0]", "13: *: `low > 0` must hold *"),
    "step not dividing": (
        "step: 2",
        "step: 3",
        "14: *: `step divides high - low` must hold, got (*, step=3).",
    ),
    "step of zero": ("step: 2", "step: 0", "14: *.step: expected an integer in 1..*"),
    "unknown path": (
        "mix.switch_epoch",
        "mix.swich_epoch",
        "14: *: unknown path (did you mean mix.switch_epoch?)",
    ),
    "seed": ("mix.switch_epoch", "seed", "14: *: is not set in a study file; give `seeds`"),
    "validation size": (SWITCH, "data.val_size: {int: [100, 200]}", "14: *: cannot be searched: *"),
    "test objective": (
        "val/error",
        "test/error",
        "16: search.objective: only val/* may be searched, got 'test/error': *",
    ),
    "test among objectives": (
        "val/error",
        "[val/nll, test/nll]",
        "16: *only val/* may be searched*",
    ),
    "unknown objective": ("val/error", "val/eror", "16: *(did you mean val/error?)"),
    "objective twice": ("val/error", "[val/error, val/error]", "16: *got 'val/error' twice"),
    "no objective": ("  objective: val/error\n", "", "11: search: missing key 'objective'"),
    "conditional without parent": (
        SWITCH,
        "mix.switch_epoch: {int: [0, 20], when: {model.name: mlp}}",
        "14: *.when: its parent 'model.name' is not in the space",
    ),
    "parent without choices": (
        SWITCH,
        "mix.switch_epoch: {int: [0, 20], when: {mix.law.alpha: 1}}",
        "14: *.when: its parent 'mix.law.alpha' has no choices",
    ),
    "alpha without a beta law": (
        ALPHA,
        "mix.law_after.alpha: {uniform: [1, 2]}",
        "13: *`mix.law_after is a Beta law` must hold, got *",
    ),
    "no choice of the parent": (
        SWITCH,
        "optimizer.name: {categorical: [adam, sgd], when: {mix.lam_scope: x}}\n"
        "    mix.lam_scope: {categorical: [batch, sample]}",
        "14: *.when: 'x' is no choice of 'mix.lam_scope': batch, sample",
    ),
    "erm as a choice": (
        ALPHA,
        "mix.law: {categorical: [erm, midpoint]}",
        "13: *: erm has nothing to search; make it an arm",
    ),
    "switch after the end": (
        "[0, 20]",
        "[0, 30]",
        "14: *: `mix.switch_epoch <= epochs` must hold, *switch_epoch=30*",
    ),
    "real where an integer is due": (
        SWITCH,
        "batch_size: {uniform: [8, 16]}",
        "14: *: expected an integer, got *",
    ),
    "choice of the wrong type": (
        SWITCH,
        "optimizer.lr: {categorical: [0.1, x]}",
        "14: *: expected a number, got text 'x'",
    ),
    "choice that cannot be": (
        SWITCH,
        "optimizer.lr: {categorical: [0.1, -1.0]}",
        "14: *: `0 < lr < inf` must hold, got (lr=-1.0).",
    ),
    "choice twice": (
        SWITCH,
        "optimizer.lr: {categorical: [0.1, 0.1]}",
        "14: *: `choices are distinct and at least one` must hold, *",
    ),
    "unknown kind": ("log_uniform", "loguniform", "13: *(did you mean log_uniform?)"),
    "one bound": ("[0, 20]", "[0]", "14: *: expected [LOW, HIGH], two integers, got [0]"),
    "no bounds": ("[0, 20]", "20", "14: *: expected [LOW, HIGH], got 20"),
    "fractional integer": ("[0, 20]", "[0.5, 20]", "14: *: expected [LOW, HIGH], two integers, *"),
    "empty space": (
        f"\n    {ALPHA}\n    {SWITCH}\n",
        " {}\n",
        "12: search.space: needs at least one path",
    ),
    "no points": ("  points: 6\n", "", "11: search: missing key 'points'"),
    "zero points": ("points: 6", "points: 0", "15: search.points: expected an integer in 1..*"),
    "grid of a continuum": (
        "points: 6",
        "sampler: grid",
        "13: *: a grid needs `values`, a number of values, beside the bounds",
    ),
    "unknown sampler": (
        "points: 6",
        "points: 6\n  sampler: tpa",
        "16: search.sampler: expected one of *, got text 'tpa' (did you mean tpe?)",
    ),
    "unknown key": ("points: 6", "points: 6\n  prunes: 1", "16: search: unknown key 'prunes' *"),
    "pruning after all seeds": (
        "points: 6",
        "points: 6\n  prune: {after: 3}",
        "16: search.prune.after: `2 <= after < number of seeds` *",
    ),
    "negative budget": (
        "points: 6",
        "points: 6\n  budget: {hours: -1}",
        "16: search.budget: `hours > 0` must hold, got (hours=-1).",
    ),
    "confirmed by a seed of the search": (
        "points: 6",
        "points: 6\n  confirm: {seeds: [2]}",
        "16: *: must be seeds that the search does not use, got 2",
    ),
    "confirmed by no seed": (
        "points: 6",
        "points: 6\n  confirm: {seeds: []}",
        "16: search.confirm: needs `seeds`, *",
    ),
    "no validation images": (
        ", val_size: 200",
        "",
        "2: base.data.val_size: `val_size >= 1` must *",
    ),
    "test images": (
        "val_size: 200",
        "val_size: 200, test: true",
        "3: base.data.test: must be false in a search*",
    ),
    "grid beside it": (
        "seeds: 3",
        "seeds: 3\ngrid: {batch_size: [64, 128]}",
        "11: grid: a study has a grid or a search*",
    ),
    "no arms": (
        "arms:\n  erm: {mix.law: erm}\n  uniform: {mix.law: {beta: 1.0}}\n",
        "",
        "8: search: a search needs `arms`*",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_spaces_are_refused_with_line_path_and_rule(tmp_path: Path, case: str) -> None:
    old, new, expected = BAD[case]
    assert STUDY.count(old) == 1 or old in {"mix.switch_epoch", "test: true"}
    with pytest.raises(StudyError) as caught:
        read(tmp_path, STUDY.lstrip("\n").replace(old, new, 1))
    (line,) = caught.value.problems
    place = line.partition("s.yaml:")[2]
    assert fnmatchcase(place.replace("[", "("), expected.replace("[", "(")), line


def test_a_space_is_read_with_its_branches(tmp_path: Path) -> None:
    text = STUDY.replace(
        f"    {ALPHA}\n",
        "    optimizer.momentum: {uniform: [0.0, 0.9], when: {optimizer.name: sgd}}\n"
        "    mix.law: {categorical: [midpoint, {beta: {log_uniform: [0.1, 32]}}]}\n"
        "    optimizer.name: {categorical: [adam, sgd]}\n",
    )
    search = read(tmp_path, text + "  budget: {hours: 2}\n  prune: {after: 2}\n").search
    assert search is not None
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
    assert (search.budget, search.prune_after) == (Budget(hours=2), 2)
    assert search.base.data.test is False


def test_search_runs_see_no_test_images(tmp_path: Path) -> None:
    study = read(tmp_path)
    assert all(not run.config.data.test for run in study.runs())
    assert all(run.config.data.val_size == 200 for run in study.runs())


def test_the_schema_accepts_what_is_read(tmp_path: Path) -> None:
    more = "  sampler: gp\n  seed: 3\n  select: val-1se\n  confirm: {seeds: [7]}\n"
    study = read(tmp_path, STUDY + more)
    jsonschema.validate(yaml.safe_load(study.source), study_schema())
    broken = yaml.safe_load(study.source)
    broken["search"]["objective"] = "test/error"
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(broken, study_schema())


def test_a_search_is_overridden_by_path(tmp_path: Path) -> None:
    study = read(tmp_path, STUDY, "search.points=9", "search.space.mix.switch_epoch={int: [0, 4]}")
    assert study.search is not None
    assert study.search.points == 9
    assert study.search.space.parameters[1].distribution == Integer(low=0, high=4)
