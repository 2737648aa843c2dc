from pathlib import Path

from searching import STUDY, read

from mixup_core.images.config import MixConfig
from mixup_core.laws import Beta, Erm
from sweeps.search import Point, Search, SearchHistory, confirming


def test_a_point_becomes_a_configuration_through_its_dotted_paths(tmp_path: Path) -> None:
    text = STUDY.replace(
        "{beta: {log_uniform: [0.1, 32.0]}}", "{categorical: [midpoint, {beta: 2.0}]}"
    )
    search = read(tmp_path, text).search
    assert isinstance(search, Search)
    config = search.config_of({"mix.law": "beta", "mix.law.alpha": 2.0, "mix.switch_epoch": 4})
    assert config.mix == MixConfig(law=Beta(alpha=2.0), switch_epoch=4, law_after=Erm())


def test_states_are_kept_only_where_a_later_point_can_fork(tmp_path: Path) -> None:
    def epochs(law: str, switch: int) -> frozenset[int]:
        text = STUDY.replace("{beta: {log_uniform: [0.1, 32.0]}}", law)
        search = read(tmp_path, text.replace("step: 2", "step: 5")).search
        assert search is not None
        return search.fork_epochs({"mix.law.alpha": 2.0, "mix.switch_epoch": switch})

    discrete = "{beta: {categorical: [2.0, 4.0]}}"
    assert epochs(discrete, 10) == {5, 10}
    assert epochs(discrete, 20) == {5, 10, 15}
    assert epochs("{beta: {log_uniform: [1.0, 4.0]}}", 10) == frozenset()


def test_confirming_gives_the_held_out_images_back_and_reads_test_images(tmp_path: Path) -> None:
    config = read(tmp_path).arms["uniform"]
    confirmed = confirming(config)
    assert (confirmed.data.val_size, confirmed.data.test) == (0, True)
    assert (confirmed.mix, confirmed.optimizer) == (config.mix, config.optimizer)


def test_a_search_asks_until_it_has_its_points_or_was_ended(tmp_path: Path) -> None:
    search = read(tmp_path, STUDY, "search.points=2").search
    assert search is not None
    closed = Point(number=0, values={}, state="complete", objectives=(0.1,))
    still_open = Point(number=1, values={}, state="open")
    assert SearchHistory(points=(closed,)).asks(search)
    assert not SearchHistory(points=(closed,), ended="ended on its budget").asks(search)
    assert not SearchHistory(points=(closed, still_open)).asks(search)


def test_a_grown_study_keeps_the_places_of_its_runs(tmp_path: Path) -> None:
    study = read(tmp_path, STUDY + "  confirm: {seeds: [100]}\n")
    values = {"mix.law.alpha": 2.0, "mix.switch_epoch": 4}
    first = Point(number=0, values=values, state="complete", objectives=(0.1,))
    second = Point(number=1, values={**values, "mix.switch_epoch": 6}, state="open")
    one, two = study.grown([first]), study.grown([first, second])
    assert two.runs()[: len(one.runs())] == one.runs()
    assert one.runs()[: len(study.runs())] == study.runs()
    assert two.points() == ("point 0", "point 1")
    confirmed = study.grown([first], first).confirmation()
    assert confirmed is not None
    assert [(run.arm, run.seed) for run in confirmed.runs()] == [
        ("erm", 100), ("uniform", 100), ("point 0", 100),
    ]  # fmt: skip
    assert study.confirmation() is None
