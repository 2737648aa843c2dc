"""The keys of a study file: each rule of a section is refused with its text and its key."""

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any, get_args

import pytest
from searching import STUDY, assert_refused
from study_files import ARMS, SMALL, read, refusals

from mixup_core.problem import MAX_SEED
from mixup_core.rules import RuleError
from sweeps.budget import Budget
from sweeps.claims import Claim, Relation
from sweeps.reading.study_file import StudyError
from sweeps.reading.study_keys import (
    MAX_POINTS,
    ClaimKeys,
    ConfirmKeys,
    EntryKeys,
    Patience,
    SearchKeys,
    StudyKeys,
    That,
    check_seeds,
)
from sweeps.readouts import Last, Rise
from sweeps.space import Integer, Real

PLAIN = "has no control or text-direction characters"


def broken(make: Callable[..., Any], **values: Any) -> RuleError:
    """Return the rule that some values break."""
    with pytest.raises(RuleError) as caught:
        make(**values)
    return caught.value


def a_study(**values: Any) -> StudyKeys:
    return StudyKeys(**{"study": "x", "base": {}, "seeds": 1} | values)


def a_search(**values: Any) -> SearchKeys:
    return SearchKeys(**{"space": {}, "objective": "val/error"} | values)


def a_claim(**values: Any) -> ClaimKeys:
    that = That(metric="test/error", less=("a", "b"))
    return ClaimKeys(**{"says": "a wins", "source": "a paper", "that": that} | values)


# Name of the case: the file, and the one line it must give ("*" for any text after it).
BAD_FILES = {
    "name is a path": (SMALL.replace("study: x", "study: ../x"), "1: study: `study is a-z, *"),
    "name starts with a hyphen": (
        SMALL.replace("study: x", "study: -x"),
        "1: study: `study is a-z, *",
    ),
    "name ends in a newline": (
        SMALL.replace("study: x", 'study: "x\\n"'),
        "1: study: `study is a-z, *",
    ),
    "name empty": (SMALL.replace("study: x", 'study: ""'), "1: study: `study is a-z, *"),
    "description turns the text": (
        SMALL + 'description: "\\u202e"\n',
        f"4: description: `description {PLAIN}` must *",
    ),
    "description with NUL": (
        SMALL + 'description: "\\0"\n',
        f"4: description: `description {PLAIN}` must *",
    ),
    "description decomposed": (
        SMALL + 'description: "e\\u0301"\n',
        "4: description: `description is in Unicode normal form C` must hold, *",
    ),
    "seeds 0": (
        SMALL.replace("seeds: 2", "seeds: 0"),
        "3: seeds: `seeds >= 1` must hold, got (seeds=0).",
    ),
    "seeds negative": (
        SMALL.replace("seeds: 2", "seeds: -1"),
        "3: seeds: `seeds >= 1` must hold, got (seeds=-1).",
    ),
    "seed negative": (
        SMALL.replace("seeds: 2", "seeds: [-1]"),
        "3: seeds: `seeds are at least one, distinct, in 0..2^63-1` must hold, got (seeds=[-1]).",
    ),
    "equivalence 0": (
        SMALL + "equivalence: 0\n",
        "4: equivalence: `equivalence > 0` must hold, got (equivalence=0.0).",
    ),
}


@pytest.mark.parametrize("case", BAD_FILES)
def test_bad_values_of_a_study_are_refused_with_line_path_and_rule(
    tmp_path: Path, case: str
) -> None:
    text, expected = BAD_FILES[case]
    (line,) = refusals(tmp_path, text)
    assert line.startswith(expected.removesuffix("*"))
    assert expected.endswith("*") or line == expected


@pytest.mark.parametrize("name", ["x", "0", "table-1", "9-", "a" * 100])
def test_a_study_is_named_in_small_letters_digits_and_hyphens(name: str) -> None:
    assert a_study(study=name).study == name


@pytest.mark.parametrize("name", ["-x", "X", "a b", "a_b", "a.b", "é", "a" * 101, "x\n", ""])
def test_other_names_of_a_study_are_refused(name: str) -> None:
    error = broken(a_study, study=name)
    rule = "study is a-z, 0-9 and -, not first a -, at most 100"
    assert str(error) == f"`{rule}` must hold, got (study={name!r})."
    assert error.fields == ("study",)


UNSEEN = (
    "\0\b\v\f\r\x1b\x1f\x7f\x80\x9f\u061c\u200e\u200f\u2028\u2029\u202a\u202e\u2066\u2069\ufeff"
)
SEEN = "\t\n ~\xa0é\u2027\u202f\u200d\u65e5"


@pytest.mark.parametrize(
    ("make", "field"), [(a_study, "description"), (a_claim, "says"), (a_claim, "source")]
)
def test_texts_hold_no_characters_that_change_how_others_are_shown(
    make: Callable[..., Any], field: str
) -> None:
    for letter in UNSEEN:
        error = broken(make, **{field: f"a{letter}b"})
        assert error.rule == f"{field} {PLAIN}"
        assert error.fields == (field,)
    assert getattr(make(**{field: SEEN}), field) == SEEN


def test_no_sentence_on_what_differs_holds_such_characters() -> None:
    for letter in UNSEEN:
        error = broken(a_study, differs=("the batch is smaller", f"a{letter}b"))
        assert error.rule == f"differs {PLAIN}"
        assert error.fields == ("differs",)
    assert a_study(differs=(SEEN,)).differs == (SEEN,)


@pytest.mark.parametrize("field", ["says", "source"])
def test_a_claim_of_a_file_holds_no_such_characters_either(tmp_path: Path, field: str) -> None:
    for unseen in ("\\e[2J", "\\r", "\\u202e"):
        texts = {"says": "a", "source": "b"} | {field: f'"{unseen}"'}
        claim = (
            f"- {{says: {texts['says']}, source: {texts['source']}, "
            "that: {less: [uniform, erm], metric: test/error}}\n"
        )
        (refusal,) = refusals(tmp_path, f"{ARMS}claims:\n{claim}")
        assert f"`{field} {PLAIN}` must hold" in refusal


@pytest.mark.parametrize("margin", [0.0, -0.1, math.inf, math.nan])
def test_an_equivalence_is_positive_and_finite(margin: float) -> None:
    assert broken(a_study, equivalence=margin).rule == "equivalence > 0"
    assert a_study(equivalence=1e-9).equivalence == 1e-9


def test_seeds_are_counted_from_zero_or_listed() -> None:
    assert a_study(seeds=3).listed_seeds() == range(3)
    assert a_study(seeds=(7, 3)).listed_seeds() == (7, 3)
    assert len(a_study(seeds=2**62).listed_seeds()) == 2**62


def test_a_list_of_seeds_is_checked_as_one() -> None:
    assert broken(a_study, seeds=(1, 1)).values == {"seeds": [1]}
    assert broken(a_study, seeds=()).fields == ("seeds",)


@pytest.mark.parametrize(
    ("seeds", "wrong"),
    [
        ((), []),
        ((-1,), [-1]),
        ((0, MAX_SEED + 1), [MAX_SEED + 1]),
        ((4, 5, 4, 5, 4), [4, 5, 4]),
        (tuple(range(-9, 0)), [-9, -8, -7, -6, -5]),
    ],
)
def test_seeds_out_of_range_or_repeated_are_named_the_first_five_of_them(
    seeds: tuple[int, ...], wrong: list[int]
) -> None:
    for error in (broken(check_seeds, seeds=seeds), broken(ConfirmKeys, seeds=seeds)):
        assert error.rule == "seeds are at least one, distinct, in 0..2^63-1"
        assert (error.values, error.fields) == ({"seeds": wrong}, ("seeds",))


def test_the_smallest_and_the_largest_seed_are_seeds() -> None:
    check_seeds((MAX_SEED, 0))
    assert ConfirmKeys(seeds=(0, 2**63 - 1)).seeds == (0, MAX_SEED)


def test_what_a_study_leaves_out_has_its_documented_default() -> None:
    study = a_study()
    assert (study.problem, study.description, study.readout) == ("images", "", Last())
    assert (study.budget, study.baseline, study.equivalence, study.differs) == (
        None, None, None, (),
    )  # fmt: skip


def test_the_budget_of_a_search_is_its_own_and_counts_no_runs(tmp_path: Path) -> None:
    with pytest.raises(StudyError, match=r"budget: `the budget of a search is search.budget`"):
        read(tmp_path, STUDY + "budget: {hours: 1}\n")
    with pytest.raises(StudyError, match=r"search\.budget: `points limit the runs of a search`"):
        read(tmp_path, STUDY + "  budget: {runs: 9}\n")
    assert a_study(budget=Budget(runs=9)).budget == Budget(runs=9)
    assert broken(a_study, budget=Budget(), search={}).fields == ("budget",)


RELATIONS: tuple[str, ...] = get_args(Relation)


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("other", ["b", 0.5])
def test_a_claim_is_one_relation_of_an_arm_and_an_arm_or_a_number(
    relation: str, other: str | float
) -> None:
    margin = 0.1 if relation == "within" else None
    that = That(metric="test/error", margin=margin, **{relation: ("a", other)})
    assert ClaimKeys(says="a wins", source="p. 3", that=that).claim() == Claim(
        says="a wins", source="p. 3", relation=relation, left="a", right=other,  # type: ignore[arg-type]
        metric="test/error", margin=margin,
    )  # fmt: skip


def test_a_claim_hands_on_its_factor_and_its_read_out() -> None:
    that = That(metric="val/nll", greater=("a", "b"), factor=1000.0, readout=Rise())
    claim = ClaimKeys(says="", source="", that=that).claim()
    assert (claim.factor, claim.readout) == (1000.0, Rise())
    assert (a_claim().claim().factor, a_claim().claim().readout) == (1.0, None)


def test_no_relation_and_several_are_refused_those_given_blamed_first() -> None:
    rule = "one of less, greater, at_least, at_most, within is given"
    none = broken(That, metric="test/error")
    assert str(none) == f"`{rule}` must hold, got ()."
    assert none.fields == RELATIONS
    two = broken(That, metric="test/error", at_least=("a", "b"), greater=("b", "a"))
    assert str(two) == f"`{rule}` must hold, got (greater=True, at_least=True)."
    assert two.fields[:2] == ("greater", "at_least")


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("sides", [(), ("a",), ("a", "b", "c"), (0.5, "a"), (0.5, 0.5)])
def test_a_relation_has_two_sides_the_first_an_arm(
    relation: str, sides: tuple[str | float, ...]
) -> None:
    error = broken(That, metric="test/error", margin=0.1, **{relation: sides})
    assert error.rule == f"{relation} compares [ARM, ARM or number]"
    assert error.fields == (relation,)


@pytest.mark.parametrize("margin", [None, 0.0, -0.1, math.inf, math.nan])
def test_within_has_a_margin_that_is_positive_and_finite(margin: float | None) -> None:
    error = broken(That, metric="test/error", within=("a", "b"), margin=margin)
    assert error.rule == "within, and it alone, has a margin > 0"
    assert error.fields == ("margin", "within")


@pytest.mark.parametrize("relation", sorted(set(RELATIONS) - {"within"}))
def test_no_other_relation_has_a_margin(relation: str) -> None:
    error = broken(That, metric="test/error", margin=0.1, **{relation: ("a", "b")})
    assert error.rule == "within, and it alone, has a margin > 0"
    assert error.fields == ("margin", relation)


@pytest.mark.parametrize(
    ("other", "factor"), [(0.5, 2.0), ("b", 0.0), ("b", -2.0), ("b", math.inf), ("b", math.nan)]
)
def test_a_factor_is_positive_finite_and_of_an_arm(other: str | float, factor: float) -> None:
    error = broken(That, metric="test/error", less=("a", other), factor=factor)
    assert error.rule == "a factor > 0 is of a second arm"
    assert error.fields == ("factor", "less")


def test_a_claim_of_a_file_may_count_its_second_arm_many_times(tmp_path: Path) -> None:
    claim = "claims: [{says: a, source: b, that: {less: [uniform, %s], metric: test/error, %s}}]\n"
    given = read(tmp_path, ARMS + claim % ("erm", "factor: 1000")).claims
    assert given[0].factor == 1000
    (refusal,) = refusals(tmp_path, ARMS + claim % ("0.5", "factor: 1000"))
    assert "`a factor > 0 is of a second arm` must hold" in refusal


@pytest.mark.parametrize(
    ("that", "problem"),
    [
        ("less: [uniform]",
         "less: `less compares [ARM, ARM or number]` must hold, got (less=('uniform',))."),
        ("less: [0.1, erm]",
         "less: `less compares [ARM, ARM or number]` must hold, got (less=(0.1, 'erm'))."),
        ("within: [uniform, erm]",
         "within: `within, and it alone, has a margin > 0` must hold, "
         "got (margin=None, within=('uniform', 'erm'))."),
        ("margin: 1, less: [uniform, erm]",
         "margin: `within, and it alone, has a margin > 0` must hold, "
         "got (margin=1.0, less=('uniform', 'erm'))."),
        ("greater: [erm, uniform], less: [uniform, erm]",
         "less: `one of less, greater, at_least, at_most, within is given` must hold, "
         "got (less=True, greater=True)."),
    ],
)  # fmt: skip
def test_a_bad_relation_of_a_file_is_refused_at_its_key(
    tmp_path: Path, that: str, problem: str
) -> None:
    claim = f"claims:\n- says: a\n  source: b\n  that: {{{that}, metric: test/error}}\n"
    (line,) = refusals(tmp_path, ARMS + claim)
    assert line == f"10: claims[0].that.{problem}"


def test_an_entry_is_a_distribution_between_bounds_or_a_choice() -> None:
    assert EntryKeys(uniform=(0.0, 1.0)).range() == Real(low=0.0, high=1.0, is_log=False)
    assert EntryKeys(log_uniform=(0.1, 1.0), values=3).range() == Real(
        low=0.1, high=1.0, is_log=True, num_values=3
    )
    assert EntryKeys(int=(0, 4)).range() == Integer(low=0, high=4, step=1)
    assert EntryKeys(int=(0, 4), step=2).range() == Integer(low=0, high=4, step=2)
    assert EntryKeys(categorical=["a", "b"]).range() is None
    assert EntryKeys().range() is None


@pytest.mark.parametrize(
    ("given", "rule", "fields"),
    [
        (
            {"uniform": (1.0, 2.0), "int": (1, 2)},
            "one of log_uniform, uniform, int, categorical is given",
            ("uniform", "int"),
        ),
        (
            {"log_uniform": (1.0, 2.0), "categorical": [1]},
            "one of log_uniform, uniform, int, categorical is given",
            ("log_uniform", "categorical"),
        ),
        ({"uniform": (1.0, 2.0), "step": 1}, "step belongs to int", ("step", "int")),
        ({"step": 1}, "step belongs to int", ("step", "int")),
        (
            {"int": (1, 2), "values": 2},
            "values belongs to uniform and log_uniform",
            ("values", "uniform", "log_uniform"),
        ),
        (
            {"categorical": [1], "values": 2},
            "values belongs to uniform and log_uniform",
            ("values", "uniform", "log_uniform"),
        ),
        ({"uniform": (1.0, 2.0), "values": 1}, "2 <= values <= 10000", ("values",)),
        ({"uniform": (1.0, 2.0), "values": 10_001}, "2 <= values <= 10000", ("values",)),
        ({"uniform": (1.0,)}, "uniform is [LOW, HIGH]", ("uniform",)),
        ({"log_uniform": (1.0, 2.0, 3.0)}, "log_uniform is [LOW, HIGH]", ("log_uniform",)),
        ({"int": ()}, "int is [LOW, HIGH]", ("int",)),
        ({"uniform": (2.0, 1.0)}, "low < high", ("uniform",)),
        ({"log_uniform": (0.0, 1.0)}, "low > 0 under a logarithm", ("log_uniform",)),
        ({"int": (0, 3), "step": 2}, "step divides high - low", ("int",)),
    ],
)
def test_a_bad_entry_of_a_space_is_blamed_on_its_keys(
    given: dict[str, Any], rule: str, fields: tuple[str, ...]
) -> None:
    error = broken(EntryKeys, **given)
    assert (error.rule, error.fields) == (rule, fields)


def test_one_bound_is_refused_at_its_key_in_the_file(tmp_path: Path) -> None:
    expected = "14: *.int: `int is [LOW, HIGH]` must hold, got (int=(0,))."
    assert_refused(tmp_path, "[0, 20]", "[0]", expected)


def test_patience_is_for_two_or_more() -> None:
    assert Patience(after=2).after == 2
    for after in (1, 0, -2):
        error = broken(Patience, after=after)
        assert str(error) == f"`after >= 2` must hold, got (after={after})."


BOTH = ("val/error", "val/nll")

# Name of the case: what a search is given, the rule it breaks, and the key that is blamed.
BAD_SEARCHES: dict[str, tuple[dict[str, Any], str, str]] = {
    "no points": ({"points": 0}, f"1 <= points <= {MAX_POINTS}", "points"),
    "points without end": (
        {"points": MAX_POINTS + 1},
        f"1 <= points <= {MAX_POINTS}",
        "points",
    ),
    "negative seed": ({"seed": -1}, "0 <= seed < 2^31", "seed"),
    "seed of more bits": ({"seed": 2**31}, "0 <= seed < 2^31", "seed"),
    "two objectives pruned": (
        {"objective": BOTH, "prune": Patience(after=2)},
        "prune is for one objective",
        "prune",
    ),
    "two objectives stopped": (
        {"objective": BOTH, "stop": Patience(after=2)},
        "stop is for one objective",
        "stop",
    ),
    "two objectives of CMA-ES": (
        {"objective": BOTH, "sampler": "cmaes"},
        "cmaes is for one objective",
        "sampler",
    ),
    "grid stopped": (
        {"sampler": "grid", "stop": Patience(after=2)},
        "a grid takes all of its points",
        "stop",
    ),
    "grid of so many points": (
        {"sampler": "grid", "points": 3},
        "a grid takes all of its points",
        "points",
    ),
    "grid with a budget": (
        {"sampler": "grid", "budget": Budget(gpu_hours=1)},
        "a grid asks for all of its points at once, so has no budget",
        "budget",
    ),
    "grid begun warm": (
        {"sampler": "grid", "warm_start": True},
        "a grid asks anyway",
        "warm_start",
    ),
    "budget of runs": (
        {"budget": Budget(runs=1)},
        "points limit the runs of a search",
        "budget",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD_SEARCHES)
def test_parts_of_a_search_that_contradict_each_other_are_refused(case: str) -> None:
    given, rule, field = BAD_SEARCHES[case]
    error = broken(a_search, **given)
    assert (error.rule, error.fields) == (rule, (field,))


@pytest.mark.parametrize(
    "given",
    [
        {"points": 1},
        {"points": MAX_POINTS},
        {"seed": 2**31 - 1},
        {"objective": BOTH},
        {"objective": ("val/error",), "sampler": "cmaes", "prune": Patience(after=2)},
        {"prune": Patience(after=2), "stop": Patience(after=3), "warm_start": True},
        {"budget": Budget(hours=1, gpu_hours=2)},
        {"sampler": "grid", "prune": Patience(after=2), "budget": Budget()},
        {"sampler": "grid", "objective": BOTH},
    ],
)
def test_parts_of_a_search_that_agree_are_taken(given: dict[str, Any]) -> None:
    search = a_search(**given)
    assert {name: getattr(search, name) for name in given} == given


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        (
            "points: 6",
            "points: 0",
            "15: search.points: `1 <= points <= 10000` must hold, got (points=0).",
        ),
        (
            "points: 6",
            "points: 6\n  confirm: {seeds: []}",
            "16: search.confirm.seeds: `seeds are at least one, distinct, *got (seeds=(]).",
        ),
        (
            "val/error",
            "[val/error, val/nll]\n  prune: {after: 2}",
            "17: search.prune: `prune is for one objective` must hold, got *",
        ),
        (
            "val/error",
            "[val/error, val/nll]\n  sampler: cmaes",
            "17: search.sampler: `cmaes is for one objective` must hold, got (sampler='cmaes').",
        ),
    ],
)
def test_a_bad_search_of_a_file_is_refused_at_its_key(
    tmp_path: Path, old: str, new: str, expected: str
) -> None:
    assert_refused(tmp_path, old, new, expected)


def test_a_grid_of_a_file_has_no_budget_and_no_warm_start(tmp_path: Path) -> None:
    grid = STUDY.replace("32.0]", "32.0], values: 3").replace("points: 6", "sampler: grid")
    with pytest.raises(StudyError, match=r"search\.budget: `a grid asks for all of its points"):
        read(tmp_path, grid + "  budget: {hours: 1}\n")
    with pytest.raises(StudyError, match=r"search\.warm_start: `a grid asks anyway`"):
        read(tmp_path, grid + "  warm_start: true\n")
