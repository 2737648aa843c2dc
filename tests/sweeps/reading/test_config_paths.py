import pytest

from mixup_core.images.config import TrainConfig
from mixup_core.laws import Beta
from mixup_core.tree import flatten
from sweeps.reading.config_paths import (
    ALPHA_PATHS,
    RESERVED,
    TYPES,
    PathError,
    check_path,
    did_you_mean,
    join,
    parse_value,
)
from sweeps.reading.strict_yaml import REFUSED

BLANK = {"epochs": 4, "batch_size": 8}


def test_the_paths_are_those_of_a_flattened_configuration() -> None:
    assert {*TYPES, *RESERVED} == set(flatten(TrainConfig(epochs=1, batch_size=1)))
    assert ALPHA_PATHS == {"mix.law.alpha": "mix.law", "mix.law_after.alpha": "mix.law_after"}
    for path in [*TYPES, *ALPHA_PATHS]:
        check_path(path)


@pytest.mark.parametrize("path", ["mix", "seed", "data.digest", "lr", "mix.law.beta", "", "mix."])
def test_a_path_that_names_no_value_is_refused(path: str) -> None:
    with pytest.raises(PathError):
        check_path(path)


def test_the_nearest_path_is_offered_by_the_whole_or_the_last_part() -> None:
    assert did_you_mean("optimiser.lr", TYPES) == " (did you mean optimizer.lr?)"
    assert did_you_mean("lr", TYPES) == " (did you mean optimizer.lr?)"
    assert did_you_mean("zzz", TYPES) == ""


def test_values_keep_the_types_of_the_configuration() -> None:
    assert repr(parse_value("optimizer.lr", 1)) == "1.0"
    assert parse_value("model.hidden", [3, 4]) == (3, 4)
    assert parse_value("mix.law_after", {"beta": 2}) == Beta(alpha=2.0)
    assert parse_value("mix.law.alpha", 2) == 2.0
    with pytest.raises(PathError, match="expected an integer, got the boolean true"):
        parse_value("epochs", True)


def test_joined_values_make_the_configuration() -> None:
    config, gone, faults = join({**BLANK, "mix.law": Beta(alpha=1.0), "mix.law.alpha": 3.0})
    assert config is not None
    assert config.mix.law == Beta(alpha=3.0)
    assert (config.epochs, config.batch_size) == (4, 8)
    assert not gone
    assert not faults


def test_one_broken_rule_does_not_hide_the_next() -> None:
    values = {"epochs": 0, "batch_size": -1, "eval_every": 5, "data.pool": 0, "optimizer.lr": -1.0}
    config, gone, faults = join(values)
    assert config is not None
    assert [fault.paths[0] for fault in faults] == [
        "data.pool",
        "optimizer.lr",
        "epochs",
        "batch_size",
    ]
    assert gone == {"data.pool", "optimizer.lr", "epochs", "batch_size", "eval_every"}


def test_a_refused_value_gives_way_without_a_word() -> None:
    _, gone, faults = join({**BLANK, "mix.switch_epoch": REFUSED, "mix.law_after": Beta(alpha=1.0)})
    assert not faults
    assert gone == {"mix.switch_epoch", "mix.law_after"}


def test_a_missing_required_value_counts_as_broken() -> None:
    _, gone, faults = join({"batch_size": 8})
    assert gone == {"epochs"}
    assert not faults
