from pathlib import Path

import jsonschema  # type: ignore[import-untyped]
import pytest
import yaml

import sweeps.studies
from mixup_core.images.choices.optimizers import Adam
from mixup_core.laws import Beta, Erm, Midpoint
from mixup_core.mixing.partners import FromDataset
from tests.bundled import bundled, few

FILES = sorted(Path(next(iter(sweeps.studies.__path__))).glob("*.yaml"), key=lambda file: file.stem)


GOLDEN = {"search-alpha-switch": "cb814f0e", "search-alpha-switch-cifar": "f416c4bb"}
"""Fingerprints of the bundled searches at 6a4fe0d, by which their Optuna studies are found."""


def test_a_bundled_study_has_the_name_of_its_file_and_its_run_command() -> None:
    for file in FILES:
        study = bundled(file.stem)
        assert study.name == file.stem
        assert f"`mixsweep run {file.stem}`" in study.description, file


@pytest.mark.parametrize("name", few([file.stem for file in FILES]))
def test_a_bundled_study_agrees_with_the_schema_and_trains_no_run_twice(
    name: str, schema_of_studies: jsonschema.Draft202012Validator
) -> None:
    study = bundled(name)
    assert len({run.key for run in study.runs()}) == len(study.arms) * len(study.seeds)
    schema_of_studies.validate(yaml.safe_load(study.source))
    sizes = [study.problem.cost.memory(config) for config in study.arms.values()]
    has_data = study.problem.data is not None
    assert all(all(size.values()) and bool(size) == has_data for size in sizes)


@pytest.mark.parametrize(
    "name",
    ["digits", "quickstart", "table1-cifar10", "table1-cifar100", "table1-fmnist", *GOLDEN],
)
def test_the_arms_of_an_image_study_differ_only_in_their_law(name: str) -> None:
    study = bundled(name)
    assert {arm: config.mix.law for arm, config in study.arms.items()} == {
        "erm": Erm(),
        "midpoint": Midpoint(),
        "uniform": Beta(alpha=1.0),
    }
    assert list(study.arms) == ["erm", "midpoint", "uniform"]
    assert study.varying() == ("mix.law", "mix.law.alpha")


@pytest.mark.parametrize(
    ("name", "data"),
    [("fmnist", "fashion-mnist"), ("cifar10", "cifar10"), ("cifar100", "cifar100")],
)
def test_table_1_follows_the_protocol_of_the_paper(name: str, data: str) -> None:
    study = bundled(f"table1-{name}")
    assert study.seeds == (0, 1, 2, 3, 4)
    midpoint = study.arms["midpoint"]
    assert (midpoint.data.name, midpoint.data.views, midpoint.data.num_train) == (
        data,
        "concat",
        None,
    )
    assert (midpoint.model.name, midpoint.model.width) == ("resnet18", None)
    assert midpoint.optimizer == Adam(lr=0.001, weight_decay=0.0)
    assert (midpoint.epochs, midpoint.batch_size, midpoint.eval_every) == (100, 750, 1)
    assert (midpoint.mix.lam_scope, midpoint.mix.partner) == ("batch", FromDataset())
    assert "Table 1" in study.description
    assert "arXiv:2210.13512" in study.description


@pytest.mark.parametrize("name", GOLDEN)
def test_a_bundled_search_keeps_its_recorded_fingerprint(name: str) -> None:
    study = bundled(name)
    assert study.search is not None
    assert study.search.fingerprint(study.seeds) == GOLDEN[name]


@pytest.mark.parametrize("name", GOLDEN)
def test_a_bundled_search_uses_no_test_images_before_its_confirmation(name: str) -> None:
    study = bundled(name)
    search = study.search
    assert search is not None
    assert (search.points >= 20, len(study.seeds) >= 3, len(search.strategy.confirm_seeds)) == (
        True,
        True,
        5,
    )
    assert set(search.strategy.confirm_seeds).isdisjoint(study.seeds)
    assert all(not config.data.test for config in (search.base, *study.arms.values()))
    assert [parameter.path for parameter in search.space.parameters] == [
        "mix.law.alpha",
        "mix.switch_epoch",
    ]
