"""Named words: words of a study that may name an entry of an installed plugin."""

from sweeps.reading.named_words import words_of


def test_words_are_collected_from_configurations_and_overrides_only() -> None:
    study = {
        "study": "mine", "description": "about cutmix", "claims": [{"says": "resizemix"}],
        "base": {"model": {"name": "tiny"}, "mix.operation": "half"},
        "arms": {"gridmix": {"mix.law": {"triangular": {"mode": 0.3}}}},
        "search": {"space": {"model.name": {"categorical": ["wide", "deep"]}}},
    }  # fmt: skip
    found = words_of(study, ["base.data.name=roses", "arms.gridmix.mix.operation={fmix: 3}"])
    assert {"tiny", "half", "triangular", "wide", "deep", "roses", "fmix"} <= found
    assert found.isdisjoint({"cutmix", "resizemix", "gridmix", "mine"})


def test_words_are_collected_from_a_study_with_values_of_wrong_types() -> None:
    assert words_of({"arms": ["tiny"], "base": None, "grid": [{"model.name": ["tiny"]}]}, []) == {
        "model.name", "tiny",
    }  # fmt: skip
