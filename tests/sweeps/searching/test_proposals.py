from dataclasses import replace
from pathlib import Path

import pytest
from optuna.samplers import BaseSampler

import sweeps.searching.proposals
from sweeps.searching.proposals import Proposals
from sweeps.study.search import Search, SearchError
from tests.sweeps.small_searches import STUDY, asked, read

CONDITIONAL = STUDY.replace(
    "    mix.law: {beta: {log_uniform: [0.1, 32.0]}}\n",
    "    mix.law: {categorical: [midpoint, {beta: {log_uniform: [0.1, 32.0]}}]}\n"
    "    optimizer.momentum: {uniform: [0.0, 0.9], when: {optimizer.name: sgd}}\n"
    "    optimizer.name: {categorical: [adam, sgd]}\n",
)


@pytest.mark.parametrize(
    ("text", "sampler"),
    [
        pytest.param(text, sampler, id=f"{kind}-{sampler}", marks=marks)
        for kind, text in (("plain", STUDY), ("conditional", CONDITIONAL))
        for sampler in ("tpe", "random", "gp", "cmaes")
        for marks in (
            [] if f"{kind}-{sampler}" in {"plain-cmaes", "conditional-tpe"} else [pytest.mark.long],
        )
    ],
)
def test_proposals_do_not_depend_on_how_often_the_storage_was_opened(
    tmp_path: Path, sampler: str, text: str
) -> None:
    study = read(tmp_path, text, f"search.sampler={sampler}")
    once = asked(study, f"sqlite:///{tmp_path / 'a.db'}", 13, reopened=False)
    often = asked(study, f"sqlite:///{tmp_path / 'b.db'}", 13, reopened=True)
    journal = asked(study, str(tmp_path / "c.log"), 13, reopened=True)
    assert once.points() == often.points() == journal.points()
    values = [tuple(point.values.items()) for point in once.points()]
    assert len(set(values)) == 13
    assert once.points()[-1].state == "open", "left by a driver that died: to be adopted"


def test_the_seeds_of_the_draws_do_not_change(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seeds, sampler = [], sweeps.searching.proposals._sampler

    def seen(search: Search, seed: int) -> BaseSampler:
        seeds.append(seed)
        return sampler(search, seed)

    monkeypatch.setattr(sweeps.searching.proposals, "_sampler", seen)
    study = read(tmp_path, STUDY, "search.sampler=random", "search.seed=2")
    asked(study, str(tmp_path / "j.log"), 3, reopened=False)
    assert seeds == [2_000_006, 2_001_015, 2_002_024]


def test_conditional_parameters_exist_only_under_their_parents(tmp_path: Path) -> None:
    study = read(tmp_path, CONDITIONAL)
    points = asked(study, str(tmp_path / "j.log"), 25, reopened=False).points()
    assert {"midpoint", "beta"} == {point.values["mix.law"] for point in points}
    for point in points:
        assert ("mix.law.alpha" in point.values) == (point.values["mix.law"] == "beta")
        assert ("optimizer.momentum" in point.values) == (point.values["optimizer.name"] == "sgd")


def test_a_sampler_without_its_package_is_refused_by_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sweeps.searching.proposals, "find_spec", lambda name: None)
    study = read(tmp_path, STUDY, "search.sampler=cmaes")
    with pytest.raises(SearchError, match="pip install cmaes"):
        Proposals(study, str(tmp_path / "j.log"))


@pytest.mark.parametrize("sampler", ["tpe", "random", "grid"])
def test_every_point_of_a_countable_space_is_proposed(tmp_path: Path, sampler: str) -> None:
    text = STUDY.replace("log_uniform: [0.1, 32.0]", "categorical: [1.0, 2.0, 4.0]")
    text = text.replace("step: 2", "step: 4")
    text = text.replace("points: 6", "sampler: grid" if sampler == "grid" else "points: 99")
    over = () if sampler == "grid" else (f"search.sampler={sampler}",)
    proposals = Proposals(read(tmp_path, text, *over), str(tmp_path / "j.log"))
    while asked := proposals.ask():
        (point,) = asked
        proposals.tell(replace(point, state="complete", objectives=(0.1,)))
    # Switch 0 is ERM, and (1.0, 20) is the arm `uniform`.
    assert len(proposals.points()) == 3 * 5 - 1


def test_points_that_could_not_be_trained_are_not_proposed(tmp_path: Path) -> None:
    text = STUDY.replace("name: mlp", "name: narrow-resnet").replace("size: 200", "size: 137")
    text = text.replace("    mix.switch_epoch: {int: [0, 20], step: 2}\n", "")
    text = text.replace("mix.law: {beta: {log_uniform: [0.1, 32.0]}}",
                        "data.train_fraction: {uniform: [0.1, 1.0]}")  # fmt: skip
    study = read(tmp_path, text, "base.batch_size=5", "search.points=20")
    points = asked(study, str(tmp_path / "j.log"), 20, reopened=False).points()
    assert len(points) == 20
    for point in points:  # of 1300 images; BatchNorm cannot work on a last batch of one
        config = study.search.config_of(point.values)
        assert config.data.size_of_subset(1300) % 5 != 1


def test_a_search_that_exhausted_its_space_continues_if_the_space_grows(
    tmp_path: Path,
) -> None:
    text = STUDY.replace("log_uniform: [0.1, 32.0]", "categorical: [1.0, 4.0]")
    text = text.replace("[0, 20], step: 2", "[0, 20], step: 10")
    proposals = Proposals(read(tmp_path, text), str(tmp_path / "j.log"))
    while proposals.ask():
        assert proposals.history().ended is None
    ended = "ended after 3 points, because its space has no other points"
    assert proposals.history().ended == ended
    fewer_arms = text.replace("  uniform: {mix.law: {beta: 1.0}}\n", "")
    proposals = Proposals(read(tmp_path, fewer_arms), str(tmp_path / "j.log"))
    (point,) = proposals.ask()
    assert point.values == {"mix.law.alpha": 1.0, "mix.switch_epoch": 20}
    assert proposals.history().ended is None
