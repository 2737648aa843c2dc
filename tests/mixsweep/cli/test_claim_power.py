"""Claim power: differences that seeds find."""

from dataclasses import replace
from itertools import product

from mixsweep.cli.claim_power import claim_powers, spell_power
from reports.numbers.comparison import contrast
from reports.numbers.power import detectable_difference, seeds_to_find
from reports.numbers.summary import Measure
from sweeps.study.claims import Claim, StatedComparison
from sweeps.study.study import Study
from tests.reports.synthetic import ended, make_study
from tests.reports.synthetic_search import GROWN, GROWN_RESULTS, search_study


def claiming(study: Study, *comparisons: StatedComparison) -> Study:
    claims = tuple(Claim(says=str(n), source="a", that=c) for n, c in enumerate(comparisons))
    return replace(study, claims=claims)


LESS = StatedComparison(metric="test/error", less=("uniform", "erm"))
NLL = StatedComparison(metric="test/nll", less=("uniform", "erm"))


def test_claims_of_one_family_have_equal_power() -> None:
    study = claiming(make_study(), LESS, NLL)
    first, second = claim_powers(study)
    assert first.found_sd == second.found_sd == detectable_difference(5, 2)
    assert second.never_below is None
    lines = [spell_power(study, power) for power in (first, second)]
    found = "5 seeds find a difference of 2.1 sd over seeds 4 times in 5"
    assert lines[0].startswith(f"0: {found}, and never a difference below ")
    assert lines[1] == f"1: {found}"


def test_claims_of_a_search_have_the_power_of_its_confirmation() -> None:
    study = claiming(search_study(), LESS)
    (planned,) = claim_powers(study)
    assert (planned.n, planned.pilot) == (4, 0)
    assert planned.found_sd == detectable_difference(4, 1)
    assert planned.never_below is not None
    (ended_,) = claim_powers(claiming(GROWN, LESS), GROWN_RESULTS)
    assert (ended_.n, ended_.pilot) == (4, 4)


def test_ensembles_find_differences_below_one_image() -> None:
    values = {"metric": "predicted/accuracy", "greater": ("uniform", "erm")}
    both = StatedComparison(**values, together=("uniform", "erm"), networks=2)
    bound = StatedComparison(**values | {"greater": ("uniform", 0.99999)})
    above = replace(bound, together=("uniform",), networks=2)
    few = replace(both, networks=10)
    (power,) = claim_powers(claiming(make_study(), few))
    assert power.cannot == ("fails", "holds"), "ten networks of five seeds"
    powers = claim_powers(claiming(make_study(), StatedComparison(**values), both, bound, above))
    assert [power.never_below is None for power in powers] == [False, True, True, True]
    assert [power.cannot for power in powers] == [(), (), ("holds",), ()]


def test_only_differences_above_the_stated_minimum_can_be_significant() -> None:
    images = Measure(least=0.0, most=1.0, size=10_000)
    theirs = {seed: 0.2 + seed / 1000 for seed in range(5)}
    for times, (part, is_told) in product((1.0, 0.5), ((0.9, False), (1.2, True))):
        (power,) = claim_powers(claiming(make_study(), replace(LESS, factor=times)))
        ours = {s: times * value + part * power.never_below for s, value in theirs.items()}
        p = contrast([(1.0, ours, images), (-times, theirs, images)]).p
        assert (p <= 0.05) == is_told


def test_stored_seeds_give_the_detectable_difference_and_the_seeds_for_a_margin() -> None:
    within = StatedComparison(metric="test/error", within=("uniform", "erm"), margin=0.01)
    study = claiming(make_study(), LESS, within)
    first, second = claim_powers(study, ended(study, {}))
    assert first.pilot == 5
    assert first.margin is None
    assert first.needed is None
    assert second.needed == seeds_to_find(0.01 / second.sd, 2, is_between=True)
    lines = [spell_power(study, power) for power in (first, second)]
    found = 100 * first.found_sd * first.sd
    assert f"which is {found:.2g} points at the sd of 5 stored seeds" in lines[0]
    assert lines[1].endswith(f"a margin of 1 points needs {second.needed} seeds")
    (equal, _) = claim_powers(replace(study, equivalence=0.005), ended(study, {}))
    assert equal.needed == seeds_to_find(0.005 / first.sd, 2)
