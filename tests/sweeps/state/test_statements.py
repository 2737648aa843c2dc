from dataclasses import replace

import pytest

import mixsweep
from mixup_core.config.building import with_values
from mixup_core.store.checkpoints import Store
from reports.numbers.judging import verdicts_of
from reports.numbers.runs import arrange
from sweeps.state.ledger import launches
from sweeps.state.statements import (
    look,
    spell_statements,
    state,
    stated_in,
    statement_key,
    statements_of,
)
from sweeps.study.claims import Claim, StatedComparison, UntilDecided
from sweeps.study.readouts import MeanOfLast
from sweeps.study.study import Study
from tests.filled import put_epochs, train_into
from tests.reports.synthetic import ended, finish, make_study
from tests.reports.synthetic_search import POINTS, result_of, search_study

MEAN = MeanOfLast(evaluations=2)
CHANGED = "before the runs; seeds changed {} after a look, at {} finished runs"


def claim(arm: str, says: str = "a", **more: object) -> Claim:
    that = StatedComparison(metric="test/error", **{"less": (arm, "erm"), **more})  # type: ignore[arg-type]
    return Claim(says=says, source="b", that=that)


def begun(store: Store, *claims: Claim) -> Study:
    """Return a study that states claims and has three of its runs trained."""
    study = replace(mixsweep.read_study("digits"), claims=claims)
    state(study, store)
    train_into(store.folder, study.runs()[:3])
    return study


def told(study: Study, store: Store) -> list[str]:
    found = statements_of(study, store)
    return [str(found[claim]) if claim in found else "" for claim in study.claims]


def test_claims_are_recorded_as_stated_before_or_after_the_first_runs(store: Store) -> None:
    study = begun(store, claim("uniform"))
    more = replace(study, claims=(claim("uniform", "other words"), claim("midpoint")))
    state(more, store)
    assert told(more, store) == ["before the runs", "after 2 of 4 runs"]
    state(study, store)
    assert told(more, store) == ["before the runs", "after 2 of 4 runs"]
    assert launches(store) == ()


def test_the_key_of_a_claim_in_stored_records_does_not_change() -> None:
    key = statement_key(make_study(), claim("uniform"))
    assert key == "e9647617843e1426278a497f85b2bd03"


def test_a_claim_with_another_margin_or_readout_is_a_different_claim(store: Store) -> None:
    first = claim("uniform", less=None, within=("uniform", "erm"), margin=0.01)
    study = replace(make_study(), claims=(first,))
    state(study, store)
    wider = replace(first, that=replace(first.that, margin=0.02))
    assert told(replace(study, claims=(first, wider)), store) == ["before the runs", ""]


def test_seeds_added_after_a_look_are_reported_and_widen_the_interval(store: Store) -> None:
    study = replace(make_study(seeds=(0, 1, 2)), claims=(claim("uniform"),))
    state(study, store)
    more = replace(study, seeds=(0, 1, 2, 3, 4))
    state(more, store)
    assert told(more, store) == ["before the runs"], "nobody had looked"
    look(more, store, ended(more, {}))
    look(more, store, ended(more, {}))
    most = replace(more, seeds=tuple(range(8)))
    state(most, store)
    state(most, store)
    (said,) = told(most, store)
    assert said == CHANGED.format("once", 10)
    results = arrange(most, ended(most, {}))
    (plain,) = verdicts_of(most, results)
    (paid,) = verdicts_of(most, results, statements=statements_of(most, store))
    assert plain.confidence == pytest.approx(0.95)
    assert paid.confidence == pytest.approx(0.975)
    assert paid.p == pytest.approx(2 * (plain.p or 0))
    assert paid.stated == said


@pytest.mark.parametrize("seeds", [(5, 6, 7, 8, 9), (0, 1, 2, 4), (0, 1, 2, 4, 5)])
def test_seeds_replaced_or_removed_after_a_look_are_reported(
    store: Store, seeds: tuple[int, ...]
) -> None:
    study = replace(make_study(seeds=(0, 1, 2, 3, 4)), claims=(claim("uniform"),))
    state(study, store)
    look(study, store, ended(study, {}))
    state(replace(study, seeds=study.seeds[::-1]), store)
    assert told(study, store) == ["before the runs"], "only the order was changed"
    other = replace(study, seeds=seeds)
    for _ in range(2):
        state(other, store)
    assert told(other, store) == [CHANGED.format("once", 10)]


def test_each_set_of_seeds_that_reports_show_counts_once(store: Store) -> None:
    first = replace(make_study(seeds=(0, 1, 2)), claims=(claim("uniform"),))
    other, third = (replace(first, seeds=seeds) for seeds in ((0, 1), (0, 1, 2, 3)))
    state(first, store)
    for study in (first, other, first, other):
        look(study, store, ended(study, {}))
    for study, times in ((first, "once"), (other, "once"), (third, "2 times"), (first, "once")):
        assert told(study, store) == [CHANGED.format(times, 6)], "no report showed the third set"


def test_a_report_of_a_search_shows_its_claims_once_it_is_confirmed(store: Store) -> None:
    study = replace(search_study(), claims=(claim("uniform"),))
    state(study, store)
    for number, winner in enumerate((None, POINTS[1])):
        grown = study.grown(POINTS, winner)
        look(grown, store, tuple(map(result_of, grown.runs())))
        (found,) = statements_of(grown, store).values()
        assert (found.looks, found.seen) == (number, 8 * number)


def test_a_claim_of_a_search_is_stated_after_runs_of_its_confirmation_only(store: Store) -> None:
    study = search_study()
    grown = study.grown(POINTS, POINTS[1])
    for runs, said in (
        (study.runs(), "before the runs"), (grown.runs_of("confirm erm"), "after 4 of 8 runs"),
    ):  # fmt: skip
        for run in runs:
            put_epochs(store, run, run.config.epochs)
        claimed = replace(study, claims=(claim("uniform", factor=float(len(said))),))
        state(claimed, store)
        assert said in told(claimed, store)[0]


def test_planned_looks_changed_after_a_look_are_reported(store: Store) -> None:
    """The driver had results when it added seeds, although no report existed."""
    first = UntilDecided(at_least=2, at_most=4, looks=2, until="decided")
    study = replace(make_study(seeds=(0, 1, 2, 3)), claims=(claim("uniform"),), until=first)
    results = [finish(run) for run in study.runs()]
    state(study, store)
    look(study, store, [r for r in results if r.run.seed == 0], is_report=False)
    second = replace(first, at_most=6)
    more = replace(study, seeds=tuple(range(6)), until=second)
    state(more, store)
    assert told(more, store) == ["before the runs"], "no look was taken"
    state(study, store)
    look(study, store, [r for r in results if r.run.seed < 2], is_report=False)
    assert told(study, store) == ["before the runs"]
    assert told(more, store) == ["before the runs; planned looks changed once after a look"]


def test_statements_of_claims_are_summarised_over_launches(store: Store) -> None:
    assert spell_statements(stated_in("digits", store).values()) == ""
    study = begun(store, claim("uniform"))
    assert spell_statements(stated_in("digits", store).values()) == "before the runs"
    state(replace(study, claims=(claim("midpoint"),)), store)
    said = spell_statements(stated_in("digits", store).values())
    assert said == "1 of 2 after the runs began"


@pytest.mark.parametrize(
    ("edited", "said"),
    [
        ({"margin": 0.02}, "margin 0.02, was 0.01"),
        ({"at_most": ("uniform", "erm"), "within": None}, "relation at_most, was within"),
        ({"metric": "test/nll"}, "metric test/nll, was test/error"),
        ({"readout": MEAN}, "readout mean of the last 2 evaluations, was last epoch"),
        ({"within": ("erm", "uniform")}, "arms erm, uniform, was uniform, erm"),
    ],
)
def test_a_claim_edited_after_runs_is_reported_with_its_change(
    store: Store, edited: dict[str, object], said: str
) -> None:
    first = claim("uniform", less=None, within=("uniform", "erm"), margin=0.01)
    study = begun(store, first)
    look(study, store, [finish(run, epochs=run.config.epochs) for run in study.runs()])
    that = replace(first.that, **edited)  # type: ignore[arg-type]
    later = replace(study, claims=(replace(first, that=that),))
    for _ in range(2):
        state(later, store)
        assert told(later, store) == [f"changed after 2 of 4 runs: {said}; 1 look before"]
    assert told(study, store) == ["before the runs"]


def test_an_arm_or_seeds_edited_after_runs_are_reported(store: Store) -> None:
    study = begun(store, claim("uniform"))
    arm = with_values(study.arms["uniform"], {"mix.law": {"beta": 0.5}})
    later = replace(study, arms={**study.arms, "uniform": arm}, seeds=(0, 1, 2))
    state(later, store)
    assert told(later, store) == [
        "changed after 1 of 6 runs: other settings of uniform; 3 seeds, were 2"
    ]
