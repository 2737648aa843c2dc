"""Named words: words of a study that may name an entry of an installed plugin."""

from sweeps.reading.named_words import words_of


def test_the_words_are_those_of_configurations_and_overrides() -> None:
    study = {
        "study": "mine", "description": "about cutmix", "claims": [{"says": "resizemix"}],
        "base": {"model": {"name": "tiny"}, "mix.operation": "half"},
        "arms": {"gridmix": {"mix.law": {"triangular": {"mode": 0.3}}}},
        "search": {"space": {"model.name": {"categorical": ["wide", "deep"]}}},
    }  # fmt: skip
    found = words_of(study, ["base.data.name=roses", "arms.gridmix.mix.operation={fmix: 3}"])
    assert {"tiny", "half", "triangular", "wide", "deep", "roses", "fmix"} <= found
    assert found.isdisjoint({"cutmix", "resizemix", "gridmix", "mine"})


def test_an_arm_may_be_called_like_what_it_uses() -> None:
    assert "cutmix" in words_of({"arms": {"cutmix": {"mix.operation": "cutmix"}}}, [])


def test_a_study_of_odd_values_has_words_too() -> None:
    assert words_of({"arms": ["tiny"], "base": None, "grid": [{"model.name": ["tiny"]}]}, []) == {
        "model.name", "tiny",
    }  # fmt: skip
