"""Keys: equal for equal computations, different for all others, for ever."""

import dataclasses
import json
import math
from collections.abc import Callable
from dataclasses import dataclass, field, make_dataclass
from pathlib import Path
from typing import Any, ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mixup_core import keys
from mixup_core.config.building import with_values
from mixup_core.config.written_forms import flatten, spelled
from mixup_core.images.config import MixConfig, TrainConfig
from mixup_core.images.data.data_config import DataConfig
from mixup_core.keys import changes, paths_left_out, run_key, stage_key, stage_keys
from mixup_core.laws import Beta, Erm, Law, Midpoint
from mixup_core.mixing.partners import FromBatch
from mixup_core.problem import PROBLEMS, Keying, Problem, problem_named
from mixup_core.rules import RuleError
from mixup_core.theory.entropy_floor import EntropyFloorConfig
from tests.mixup_core.random_trees import trees

BASE = TrainConfig(epochs=4, batch_size=8)
MIXED = with_values(BASE, {"mix.law": {"beta": 0.5}, "mix.switch_epoch": 2})
FROZEN = json.loads((Path(__file__).parent / "keys.json").read_text())


@pytest.mark.parametrize("frozen", FROZEN, ids=lambda frozen: frozen["run"][:6])
def test_keys_equal_the_keys_of_the_first_version(frozen: dict[str, Any]) -> None:
    """The first version made these keys; if they change, users lose all stored results."""
    config = with_values(BASE, frozen["values"])
    assert run_key(config) == frozen["run"]
    assert list(stage_keys(config)) == frozen["stages"]


@given(one=trees(BASE), other=trees(BASE))
def test_run_keys_are_equal_only_for_configurations_with_equal_results(
    one: TrainConfig, other: TrainConfig
) -> None:
    def numbers(config: TrainConfig) -> dict[str, Any]:
        flat = flatten(config)
        keying = keys.problem_of(config).keying
        return {path: flat[path] for path in flat if path not in keying.stands_for}

    try:
        same = run_key(one) == run_key(other)
    except RuleError:
        return
    assert same == (numbers(one) == numbers(other))


@pytest.mark.parametrize("key", [run_key, stage_keys])
def test_the_digest_of_images_replaces_their_path_in_keys(key: Callable[[Any], Any]) -> None:
    def of(folder: str, digest: str | None) -> TrainConfig:
        data = DataConfig(name="image-folder", folder=folder, image_size=32, digest=digest)
        return dataclasses.replace(BASE, data=data)

    assert key(of("a", "0")) == key(of("b", "0")) != key(of("a", "1"))
    with pytest.raises(RuleError, match=r"digest, which replaces data\.\w+ in keys") as caught:
        key(of("a", None))
    assert caught.value.fields == ("data.folder", "data.digest")


def test_an_integer_given_for_a_float_field_gives_the_same_keys() -> None:
    as_int = dataclasses.replace(BASE, mix=MixConfig(law=Beta(alpha=1)))
    as_float = dataclasses.replace(BASE, mix=MixConfig(law=Beta(alpha=1.0)))
    assert run_key(as_int) == run_key(as_float)
    assert stage_keys(as_int) == stage_keys(as_float)


def test_equal_first_epochs_have_equal_stage_keys() -> None:
    switched_later = with_values(MIXED, {"mix.switch_epoch": 3})
    never = with_values(MIXED, {"mix.switch_epoch": None})
    assert stage_keys(MIXED)[:2] == stage_keys(switched_later)[:2] == stage_keys(never)[:2]
    assert stage_key(MIXED, 1) == stage_keys(never)[0]
    assert stage_key(MIXED, 3) != stage_key(switched_later, 3)
    assert stage_key(switched_later, 4) != stage_key(never, 4)
    assert stage_keys(with_values(BASE, {"epochs": 8}))[:4] == stage_keys(BASE)


def test_a_run_that_never_mixes_has_the_stage_keys_of_erm() -> None:
    for law in (Beta(alpha=0.3), Midpoint()):
        mix = MixConfig(law=law, switch_epoch=0, lam_scope="sample", partner=FromBatch())
        config = dataclasses.replace(BASE, mix=mix)
        assert stage_keys(config) == stage_keys(BASE)
        assert run_key(config) != run_key(BASE)


@pytest.mark.parametrize("epoch", [-1, 0, 5])
def test_a_run_has_no_stage_before_its_first_epoch_or_after_its_last(epoch: int) -> None:
    with pytest.raises(RuleError, match="1 <= epoch <= epochs"):
        stage_key(MIXED, epoch)


def test_changes_are_the_epochs_at_which_the_settings_change() -> None:
    for epoch in range(1, 4):
        assert changes(with_values(MIXED, {"mix.switch_epoch": epoch})) == (epoch,)
    assert changes(BASE) == ()


def test_all_paths_that_leave_keys_are_listed_with_their_reasons() -> None:
    found = list(paths_left_out())
    keyings = {name: problem_named(name).keying for name in PROBLEMS}
    assert {(name, path) for name, path, *_ in found} == {
        (name, path)
        for name, keying in keyings.items()
        for path in (*keying.never, *keying.stands_for, *keying.by_epoch)
    }
    assert all(map(all, found))


def test_a_new_numerics_version_changes_every_key(monkeypatch: pytest.MonkeyPatch) -> None:
    run, stages = run_key(MIXED), stage_keys(MIXED)
    monkeypatch.setattr(keys, "NUMERICS_VERSION", keys.NUMERICS_VERSION + 1)
    assert run_key(MIXED) != run
    assert set(stage_keys(MIXED)).isdisjoint(stages)


def test_a_correction_of_one_problem_changes_only_keys_of_this_problem(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    raised = {"images"}

    def problem_of(config: Any) -> Problem:
        problem = problem_named(config.problem)
        count = 1 if problem.name in raised else 0
        keying = dataclasses.replace(problem.keying, corrected=lambda config: count)
        return dataclasses.replace(problem, keying=keying)

    other = EntropyFloorConfig()
    before = {config: (run_key(config), *stage_keys(config)) for config in (MIXED, other)}
    monkeypatch.setattr(keys, "problem_of", problem_of)
    now = {config: (run_key(config), *stage_keys(config)) for config in (MIXED, other)}
    assert set(now[MIXED]).isdisjoint(before[MIXED])
    assert now[other] == before[other]
    raised.clear()
    assert run_key(MIXED) == before[MIXED][0]


@dataclass(frozen=True, kw_only=True, slots=True)
class Walk:
    name: ClassVar = "walk"

    speed: float = 1.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Phase:
    law: Law = field(default_factory=Erm)
    pace: Walk = field(default_factory=Walk)


@dataclass(frozen=True, kw_only=True, slots=True)
class Toy:
    problem: ClassVar = "toy"

    pace: Walk = field(default_factory=Walk)
    phases: tuple[Phase | Law, ...] = ()
    epochs: int = 2
    seed: int = 0


def _grown(kind: Any, **added: Any) -> Any:
    """Return a dataclass with one more field, as a later version might have."""
    own = [(part.name, kind.__annotations__[part.name], part) for part in dataclasses.fields(kind)]
    new = [(name, type(value), field(default=value)) for name, value in added.items()]
    variables = {name: getattr(kind, name) for name in ("name", "problem") if name in vars(kind)}
    return make_dataclass(
        kind.__name__, own + new, frozen=True, kw_only=True, slots=True, namespace=variables
    )


def _set_keying(monkeypatch: pytest.MonkeyPatch, keying: Keying) -> None:
    problem = Problem(
        name="toy", title="toy", config=Toy, process="none:none", metrics={}, headline=(),
        keying=keying,
    )  # fmt: skip
    monkeypatch.setattr(keys, "problem_of", lambda config: problem)
    keys._content.cache_clear()  # type: ignore[attr-defined]
    keys._spelled_epochs.cache_clear()


KEYINGS = [
    Keying(
        by_epoch={"phases": "Each epoch is decided by all of them."},
        of_epoch=lambda config, epoch: [spelled(phase, brief=True) for phase in config.phases],
    ),
    Keying(
        by_epoch=dict.fromkeys(("phases", "phases.law"), "Each epoch is decided by all laws."),
        of_epoch=lambda config, epoch: [
            spelled(getattr(phase, "law", phase)) for phase in config.phases
        ],
    ),
]
"""Keyings of lists whose items enter stage keys epoch by epoch, as a whole or in part."""


@pytest.fixture(params=KEYINGS, ids=["whole", "part"])
def toy(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    _set_keying(monkeypatch, request.param)


@pytest.mark.parametrize(
    "keying",
    [Keying(never={"seed": "Nothing is drawn."}), Keying(stands_for={"seed": "epochs"})],
    ids=["never", "replaced"],
)
def test_a_seed_that_a_problem_leaves_out_enters_no_key(
    monkeypatch: pytest.MonkeyPatch, keying: Keying
) -> None:
    _set_keying(monkeypatch, Keying())
    assert run_key(Toy(seed=1)) != run_key(Toy())
    _set_keying(monkeypatch, keying)
    assert run_key(Toy(seed=1)) == run_key(Toy())
    assert stage_keys(Toy(seed=1)) == stage_keys(Toy())


@pytest.mark.usefixtures("toy")
def test_a_field_added_later_changes_keys_only_when_it_differs_from_its_default() -> None:
    later_walk = _grown(Walk, sway=0.0)
    later_phase = _grown(Phase, until=0)
    later = _grown(Toy, mood="calm")
    law = Beta(alpha=0.5)
    walk, same_walk = Walk(speed=2.0), later_walk(speed=2.0)
    before = Toy(pace=walk, phases=(Phase(law=law, pace=walk), Phase()))
    same = later(pace=same_walk, phases=(later_phase(law=law, pace=same_walk), later_phase()))
    assert run_key(same) == run_key(before)
    assert stage_keys(same) == stage_keys(before)
    for other in (
        dataclasses.replace(same, mood="keen"),
        dataclasses.replace(same, pace=later_walk(speed=2.0, sway=0.5)),
        dataclasses.replace(same, phases=(later_phase(law=law), later_phase(until=1))),
    ):
        assert run_key(other) != run_key(before)
        assert stage_keys(other)[-1] != stage_keys(before)[-1]


def test_an_item_that_is_a_choice_enters_stage_keys_only_epoch_by_epoch(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    _set_keying(monkeypatch, KEYINGS[1])
    law = Beta(alpha=0.5)
    assert stage_keys(Toy(phases=(law,))) == stage_keys(Toy(phases=(Phase(law=law),)))


@pytest.mark.usefixtures("toy")
@pytest.mark.parametrize("key", [run_key, stage_keys])
@pytest.mark.parametrize("part", ["pace", "phases"])
def test_a_value_that_is_not_a_number_has_no_key(key: Callable[[Any], Any], part: str) -> None:
    walk = Walk(speed=math.nan)
    broken = {"pace": walk, "phases": (Phase(pace=walk),)}
    with pytest.raises(ValueError, match="not JSON compliant"):
        key(Toy(**{part: broken[part]}))


@pytest.mark.usefixtures("toy")
@given(data=st.data())
def test_keys_of_other_problems_than_images_depend_on_the_problem_name(data: st.DataObject) -> None:
    config = data.draw(trees(Toy()))
    renamed = make_dataclass("Toy", [], bases=(Toy,), frozen=True, namespace={"problem": "game"})
    other = renamed(**{part.name: getattr(config, part.name) for part in dataclasses.fields(Toy)})
    assert run_key(config) != run_key(other)
