import re
from typing import get_args

from hypothesis import example, given
from hypothesis import strategies as st

from mixup_core.config.building import with_values
from mixup_core.images.config import TrainConfig
from mixup_core.keys import run_key
from mixup_core.problem import MAX_SEED
from mixup_core.seeding import Purpose, stream_seed
from sweeps.reading.study_file import bundled_names
from sweeps.study.study import Run, spell_seeds
from tests import toy
from tests.bundled import bundled
from tests.reports.synthetic import study_of

BASE = TrainConfig(epochs=2, batch_size=8)


def test_no_run_of_a_bundled_study_is_a_copy_of_its_teacher() -> None:
    """Both share the training images, but neither start nor batches nor mixing."""
    taught = 0
    for study in map(bundled, bundled_names()):
        runs = [run for run in study.runs() if run.seed == study.seeds[0]]
        keys = {run.key for run in runs} if any(run.teacher for run in runs) else set()
        for run in runs:
            if run.teacher is None:
                continue
            assert run_key(run.teacher) in keys
            drawn, theirs = (
                {purpose: stream_seed(config.seeds, purpose) for purpose in get_args(Purpose)}
                for config in (run.config, run.teacher)
            )
            same = {purpose for purpose in drawn if drawn[purpose] == theirs[purpose]}
            assert {"training subset", "class pairing"} <= same
            assert same.isdisjoint({"initial weights", "batch order", "mixing", "augmentation"})
            taught += 1
    assert taught > 50


def test_a_run_key_depends_on_the_configuration_and_not_on_the_arm() -> None:
    first, second = (Run(arm=arm, config=BASE) for arm in ("a", "b"))
    assert first.key == second.key == run_key(BASE)
    assert Run(arm="a", config=with_values(BASE, {"seed": 1})).key != first.key


def test_varying_paths_are_those_that_only_one_arm_has_but_never_the_seed() -> None:
    mixed = with_values(BASE, {"mix.law": {"beta": 1.0}})
    after = [
        with_values(BASE, {"mix.switch_epoch": 1, "mix.law_after": {"beta": alpha}, "seed": 9})
        for alpha in (0.5, 2.0)
    ]
    paths = study_of("x", {"a": mixed, "b": after[0], "c": after[1]}).varying()
    assert paths == (
        "mix.law", "mix.law.alpha", "mix.switch_epoch", "mix.law_after", "mix.law_after.alpha",
    )  # fmt: skip


def test_a_part_of_a_study_has_the_same_runs_as_the_whole_study(toy_problem: None) -> None:
    arms = {
        "still": toy.ToyConfig(epochs=2),
        "master": toy.ToyConfig(epochs=3, drift=2.0),
        "pupil": toy.ToyConfig(epochs=5, teacher="master"),
        "confirm pupil": toy.ToyConfig(epochs=6, teacher="master"),
        "confirm master": toy.ToyConfig(epochs=4, drift=2.0),
    }
    whole = study_of("x", arms, (4, 1))
    for arm in ("pupil", "confirm pupil"):
        part = whole.part(["still", arm]).part([arm])
        assert (part.baseline, part.runs()) == (arm, whole.runs_of(arm))


@given(st.sets(st.integers(0, 30) | st.integers(0, MAX_SEED), min_size=1, max_size=40))
@example({0, MAX_SEED})
@example({42, 4_000_000_000})
def test_spelled_seeds_list_each_seed_once(seeds: set[int]) -> None:
    text, _, more = spell_seeds(seeds).partition(" and ")
    found: list[int] = []
    for part in re.findall(r"[0-9]+(?:-[0-9]+)?", text):
        first, _, last = part.partition("-")
        found += range(int(first), int(last or first) + 1)
    assert found == sorted(seeds)[: len(found)]
    assert len(found) + int(more.removesuffix(" more") or 0) == len(seeds)
    assert len(text) < 600
