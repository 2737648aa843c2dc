import random
from collections.abc import Iterable, Sequence
from pathlib import Path

import pytest

import mixup_core.images.data.datasets
import sweeps.searching.search_source
from mixup_core.images.config import TrainConfig
from mixup_core.images.data.datasets import Images, load
from mixup_core.images.training import fit
from mixup_core.keys import stage_keys
from mixup_core.laws import Beta
from mixup_core.store.checkpoints import Store
from mixup_core.store.errors import StoreError
from sweeps.searching.search_history import read_history
from sweeps.searching.search_source import SearchSource
from sweeps.searching.selection import grown_study
from sweeps.searching.sources import Outlook
from sweeps.state.ledger import enter
from sweeps.state.results import RunResult, read_results
from sweeps.study.search import Point
from sweeps.study.study import Run
from tests.sweeps.small_searches import (
    CONFIRM,
    GRID,
    STUDY,
    BrokenRunError,
    Driver,
    KilledError,
    WorkerLostError,
    expected_error,
    noisy,
    read,
)

RACE = STUDY.replace("seeds: 3", "seeds: 5") + "  prune: {after: 2, every: 1}\n"


def points_of(driver: Driver) -> list[Point]:
    return list(driver.proposals.points())


def best_of(driver: Driver) -> Point:
    return min(points_of(driver), key=lambda point: point.objectives)


def assert_scored(driver: Driver, points: Sequence[Point], *objectives: str) -> None:
    """Assert that the objectives of points are the means of their results over the seeds."""
    for point in points:
        results = read_results(driver.source.study.runs_of(point.arm), driver.store)
        lasts = [result.records[-1].metrics for result in results]
        means = [sum(last[name] for last in lasts) / len(lasts) for name in objectives]
        assert point.objectives == pytest.approx(tuple(means), rel=1e-12)


def test_every_point_is_trained_once_per_seed_and_scored_by_its_means(tmp_path: Path) -> None:
    text = STUDY.replace("objective: val/error", "objective: [val/error, val/nll]")
    driver = Driver(read(tmp_path, text), tmp_path).run()
    points = points_of(driver)
    assert [point.state for point in points] == ["complete"] * 6
    assert len(driver.trained) == len(set(driver.trained)) == (2 + 6) * 3
    assert_scored(driver, points, "val/error", "val/nll")


PRUNED = STUDY + "  prune: {after: 2}\n"
KINDS = {"plain": STUDY, "confirmed": CONFIRM, "pruned": PRUNED, "raced": RACE}


@pytest.mark.parametrize(
    ("text", "kill_in"),
    [
        pytest.param(text, kill_in, id=f"{kind}-{kill_in}", marks=marks)
        for kind, text in KINDS.items()
        for kill_in in ("start", "report")
        for marks in (
            [] if (kind in {"plain", "pruned"}) == (kill_in == "report") else [pytest.mark.long],
        )
    ],
)
def test_a_search_killed_at_any_time_resumes_with_identical_results(
    tmp_path: Path, kill_in: str, text: str
) -> None:
    study = read(tmp_path, text)
    undisturbed = Driver(study, tmp_path / "whole").run()
    rng = random.Random(0)
    kills, trained = 0, []
    while True:
        driver = Driver(study, tmp_path / "cut")
        try:
            driver.run(kill_after=rng.randrange(5), kill_in=kill_in)
            trained += driver.trained
            break
        except KilledError:
            kills += 1
            trained += driver.trained
            assert kills < 100
    assert kills >= 5
    assert points_of(driver) == points_of(undisturbed)
    assert not any(point.state == "open" for point in points_of(driver))
    assert trained == undisturbed.trained, "each run once, in the same order"
    assert driver.source.study == undisturbed.source.study


def test_the_outlook_of_a_search_has_its_runs_and_the_hours_of_the_nearest_limit(
    tmp_path: Path,
) -> None:
    study = read(tmp_path, STUDY + "  budget: {hours: 2, gpu_hours: 2}\n")
    driver, clock = Driver(study, tmp_path), [720.0]
    driver.proposals.spend(0.25, 1.0)
    source = SearchSource(study, driver.store, driver.proposals, clock=lambda: clock[0])
    clock[0] += 1800
    source.gpus_per_run = 0.5
    assert source.outlook(1) == Outlook(num_runs=6 * 3, at_once=3, hours=1.25)
    assert source.outlook(4) == Outlook(num_runs=6 * 3, at_once=3, hours=0.5)
    assert (source.num_waiting, source.num_known) == ((6 + 2) * 3, 0)
    wide = read(tmp_path, f"{STUDY}  confirm: {{seeds: {list(range(100, 109))}}}\n")
    assert Driver(wide, tmp_path / "wide").source.num_waiting == 9 * (2 + 1)


def test_raising_the_number_of_points_extends_the_same_search(tmp_path: Path) -> None:
    whole = Driver(read(tmp_path, STUDY, "search.points=9"), tmp_path / "whole").run()
    Driver(read(tmp_path), tmp_path / "more").run()
    more = Driver(read(tmp_path, STUDY, "search.points=9"), tmp_path / "more").run()
    assert points_of(more) == points_of(whole)
    assert len(more.trained) == 3 * 3


def test_the_winner_and_the_arms_are_confirmed_on_fresh_seeds_and_test_images(
    tmp_path: Path,
) -> None:
    driver = Driver(read(tmp_path, CONFIRM), tmp_path)
    assert driver.source.outlook(1) == Outlook(num_runs=6 * 3, at_once=3, num_last=2 * (2 + 1))
    assert driver.source.study.winning_run() is None
    driver.run()
    assert driver.source.outlook(1) == Outlook(at_once=3)
    best = best_of(driver)
    confirmed = driver.source.study.confirmation()
    assert list(confirmed.arms) == ["erm", "uniform", best.arm]
    assert confirmed.seeds == (100, 101)
    for config in confirmed.arms.values():
        assert (config.data.val_size, config.data.test) == (0, True)
    assert confirmed.arms[best.arm].mix == driver.source.study.arms[best.arm].mix
    assert driver.trained[-6:] == [
        (f"confirm {arm}", seed) for arm in confirmed.arms for seed in (100, 101)
    ]
    winning = driver.source.study.winning_run()
    assert driver.ends_kept == [(winning.arm, winning.seed)] == [(f"confirm {best.arm}", 100)]
    again = Driver(read(tmp_path, CONFIRM), tmp_path).run()
    assert again.trained == []
    assert (points_of(again), again.source.study) == (points_of(driver), driver.source.study)
    fewer = Driver(read(tmp_path, CONFIRM, "search.points=3"), tmp_path).source
    assert (fewer.study.winning_run(), fewer.outlook(1)) == (winning, Outlook(at_once=3))


def test_points_that_another_study_has_trained_are_confirmed_in_the_same_launch(
    tmp_path: Path,
) -> None:
    Driver(read(tmp_path, STUDY), tmp_path).run()
    driver = Driver(read(tmp_path, CONFIRM.replace("study: s", "study: again")), tmp_path).run()
    confirmed = driver.source.study.confirmed()
    assert len(confirmed) == 3
    assert driver.trained == [(arm, seed) for arm in confirmed for seed in (100, 101)]


def test_a_teacher_of_the_confirmation_whose_state_is_lost_is_trained_again(
    tmp_path: Path,
) -> None:
    pupil = "  pupil: {mix.law: midpoint, objective: {filter: {teacher: erm}}}\nseeds:"
    study = read(tmp_path, CONFIRM.replace("seeds:", pupil, 1))
    first = Driver(study, tmp_path).run()
    lost = next(run for run in first.source.study.runs_of("confirm pupil") if run.seed == 101)
    first.store.delete(stage_keys(lost.config)[-1])
    (taught,) = [run for run in first.source.study.runs() if run.config == lost.teacher]
    assert Driver(study, tmp_path).run().trained == [(taught.arm, 101), (lost.arm, 101)]


def test_a_teacher_of_points_whose_state_is_lost_is_trained_before_a_new_point(
    tmp_path: Path,
) -> None:
    text = STUDY.replace("epochs: 20", "epochs: 20\n  objective: {filter: {teacher: plain}}")
    text = text.replace("erm: {mix.law: erm}", "plain: {mix.law: erm, objective: plain}")
    Driver(read(tmp_path, text, "search.points=2"), tmp_path).run()  # which stores no last states
    again = Driver(read(tmp_path, text, "search.points=3"), tmp_path).run()
    (teacher,) = again.source.study.beside
    assert again.trained == [(arm, seed) for arm in (teacher, "point 2") for seed in range(3)]


def diverging(config: TrainConfig) -> dict[str, float]:
    """Return the metrics of a run; points diverge at seed 1."""
    broken = config.seed == 1 and config.mix.switch_epoch is not None
    return {"val/error": float("nan")} if broken else noisy(config)


@pytest.mark.parametrize("text", [CONFIRM, PRUNED], ids=["confirmed", "pruned"])
def test_a_diverged_seed_fails_its_point_without_an_objective(tmp_path: Path, text: str) -> None:
    driver = Driver(read(tmp_path, text), tmp_path, diverging).run()
    if text == PRUNED:  # the seeds that are compared first are enough
        assert len(driver.trained) == 2 * 3 + 6 * 2
    told = {(point.state, point.objectives, point.num_seeds) for point in points_of(driver)}
    assert told == {("failed", (), 2 if text == PRUNED else None)}
    assert driver.source.study.confirmation() is None
    assert Driver(read(tmp_path, text), tmp_path, diverging).run().trained == []


@pytest.mark.parametrize("rule", ["val-mean", "val-1se"])
def test_a_point_of_which_a_run_records_no_objective_fails(tmp_path: Path, rule: str) -> None:
    lost = Driver(read(tmp_path), tmp_path / "whole").run().source.study.arms["point 2"]

    def metrics(config: TrainConfig) -> dict[str, float]:
        found = noisy(config)
        if config.mix == lost.mix and config.seed == 1:
            del found["val/nll"]
        return found

    text = CONFIRM.replace("objective: val/error", "objective: [val/error, val/nll]")
    text += f"  select: {rule}\n"
    driver = Driver(read(tmp_path, text), tmp_path / "home", metrics).run()
    states = [point.state for point in points_of(driver)]
    assert states == ["complete"] * 2 + ["failed"] + ["complete"] * 3
    assert driver.source.study.confirmation() is not None
    assert Driver(read(tmp_path, text), tmp_path / "home", metrics).run().trained == []


@pytest.mark.parametrize(
    ("failure", "text", "seed"),
    [
        (WorkerLostError, CONFIRM, 1),
        (BrokenRunError, CONFIRM, 1),
        (BrokenRunError, CONFIRM + "  prune: {after: 2}\n", 2),
    ],
)
def test_a_failed_seed_keeps_its_point_open_until_a_launch_trains_the_seed(
    tmp_path: Path, failure: type[Exception], text: str, seed: int
) -> None:
    study = read(tmp_path, text)
    lost = Driver(study, tmp_path / "whole").run().source.study.arms["point 2"]

    def metrics(config: TrainConfig) -> dict[str, float]:
        if config.mix == lost.mix and config.seed == seed:
            raise failure
        return noisy(config)

    first = Driver(study, tmp_path / "home", metrics).run()
    states = [point.state for point in points_of(first)]
    assert states == ["complete"] * 2 + ["open"] + ["complete"] * 3
    others = first.source.study.confirmation()
    assert others is not None, "one broken node keeps nobody from a result"
    history = first.proposals.history()
    assert grown_study(study, history, first.store) == first.source.study

    again = Driver(study, tmp_path / "home").run()
    assert {point.state for point in points_of(again)} == {"complete"}
    assert again.trained[0] == ("point 2", seed)
    best = best_of(again)
    confirmed = again.source.study.confirmation()
    assert list(confirmed.arms) == ["erm", "uniform", best.arm]


@pytest.mark.parametrize("rule", ["val-mean", "val-1se"])
def test_runs_of_closed_points_lost_from_the_store_are_retrained(tmp_path: Path, rule: str) -> None:
    study = read(tmp_path, f"{CONFIRM}  select: {rule}\n")
    first = Driver(study, tmp_path).run()
    best = best_of(first)
    for run in first.source.study.runs_of(best.arm)[1:]:
        first.store.delete(*stage_keys(run.config))
    assert grown_study(study, first.proposals.history(), first.store).confirmation() is not None
    again = Driver(study, tmp_path).run()
    assert again.trained == [(best.arm, 1), (best.arm, 2)]
    assert points_of(again) == points_of(first)
    assert again.source.study == first.source.study, "selected as if nothing had been lost"


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(text, id=kind, marks=[pytest.mark.long] if kind == "raced" else [])
        for kind, text in KINDS.items()
    ],
)
def test_a_single_store_error_ends_the_launch_without_losing_results(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    study = read(tmp_path, text)
    whole = Driver(study, tmp_path / "whole").run()
    trained: list[tuple[str, int]] = []
    num_troubles = 0
    while True:
        driver = Driver(study, tmp_path / "cut")
        answers = num_troubles + 1

        def answer(runs: Iterable[Run], store: Store) -> tuple[RunResult, ...]:
            nonlocal answers
            answers -= 1
            if answers == 0:
                raise StoreError("no answer")
            return read_results(runs, store)

        with monkeypatch.context() as patched:
            patched.setattr(sweeps.searching.search_source, "read_results", answer)
            driver.run()
        trained += driver.trained
        if driver.source.trouble is None:
            break
        assert str(driver.source.trouble) == "no answer"
        num_troubles += 1
    assert num_troubles >= 5
    assert points_of(driver) == points_of(whole)
    assert not any(point.state == "open" for point in points_of(driver))
    assert driver.source.study == whole.source.study
    assert sorted(trained) == sorted(whole.trained), "each run once"


@pytest.mark.parametrize(
    ("text", "overrides", "num_seeds", "num_looks"),
    [
        (STUDY + "  prune: {after: 9}\n", ("search.points=12", "seeds=12"), 12, 1),
        (RACE, ("search.points=8", "seeds=8"), 8, 2),
    ],
)
def test_a_pruned_point_gets_no_seeds_after_its_look_and_is_worse_than_the_best(
    tmp_path: Path, text: str, overrides: Sequence[str], num_seeds: int, num_looks: int
) -> None:
    driver = Driver(read(tmp_path, text, *overrides), tmp_path).run()
    points = points_of(driver)
    pruned = [point for point in points if point.state == "pruned"]
    assert 0 < len(pruned) < len(points)
    assert len({point.num_seeds for point in pruned}) >= num_looks
    for point in points:
        seeds = [seed for arm, seed in driver.trained if arm == point.arm]
        assert seeds == list(range((point in pruned and point.num_seeds) or num_seeds))
        assert driver.source.study.seeds_of(point.arm) == tuple(seeds)
    errors = {p.arm: expected_error(driver.source.study.arms[p.arm]) for p in points}
    best = min(errors[point.arm] for point in points if point.state == "complete")
    assert all(errors[point.arm] > best for point in pruned)


@pytest.mark.parametrize(
    ("sampler", "states"), [("sampler: grid", 8), ("sampler: random\n  points: 99", 9)]
)
def test_a_search_of_all_points_trains_each_shared_epoch_once(
    tmp_path: Path, sampler: str, states: int
) -> None:
    text = STUDY.replace("log_uniform: [0.1, 32.0]", "categorical: [0.25, 1.0, 4.0]")
    text = text.replace("[0, 20], step: 2", "[0, 20], step: 5").replace("points: 6", sampler)
    study = read(tmp_path, text)
    driver = Driver(study, tmp_path)
    for run in study.runs():
        driver._write(run, 20, noisy(run.config))
    driver = Driver(study, tmp_path).run()
    # Three alphas, switch 0 is the arm `erm`, (1, 20) is the arm `uniform`: 3 x 4 - 1 points.
    assert len(points_of(driver)) == 11
    # Per seed: two alphas with 20 epochs of mixing and forks of 15, 10 and 5; one without the 20.
    assert driver.epochs == 3 * (2 * (20 + 15 + 10 + 5) + 20 + 15 + 10)
    # Only a grid is known to have no point that forks from (1, 15).
    assert len(driver.store.states.keys()) == 3 * states


def test_a_search_without_further_improvement_ends_early_with_a_reason(tmp_path: Path) -> None:
    text = STUDY.replace("points: 6", "points: 60\n  stop: {after: 4}")
    study = read(tmp_path, text)
    driver = Driver(study, tmp_path).run()
    history = read_history(study, driver.url)
    assert 4 < len(history.points) < 60
    ended = "because the last 4 improved by less than the noise between seeds"
    assert history.ended == f"ended after {len(history.points)} points, {ended}"
    again = Driver(study, tmp_path).run()
    assert (again.trained, len(again.proposals.points())) == ([], len(history.points))
    killed = tmp_path / "killed"
    with pytest.raises(KilledError):
        Driver(study, killed).run(kill_after=8)
    Driver(study, killed).run()
    assert read_history(study, str(killed / "optuna.log")).points == history.points
    longer = read(tmp_path, text.replace("after: 4", "after: 6"))
    extended = Driver(longer, tmp_path).run()
    assert len(extended.proposals.points()) > len(history.points)


def test_a_budget_ends_a_search_after_whole_points_of_all_launches_together(
    tmp_path: Path,
) -> None:
    study = read(tmp_path, STUDY + "  budget: {gpu_hours: 1.5}\n")
    first = Driver(study, tmp_path, gpus_per_run=1.0).run()
    assert first.proposals.spent[1] == pytest.approx(first.epochs * 36 / 3600)
    assert 0 < len(points_of(first)) < 6
    assert all(point.state == "complete" for point in points_of(first))
    history = read_history(study, first.url)
    ended = f"used up its budget of 1.5 GPU-hours, after {len(history.points)} points"
    assert history.ended == ended
    assert not history.asks(study.search)  # type: ignore[arg-type]
    for gpus_per_run in (1.0, 0.5):
        again = Driver(study, tmp_path, gpus_per_run=gpus_per_run).run()
        assert again.trained == []
        assert points_of(again) == points_of(first)
    more = read(tmp_path, STUDY + "  budget: {gpu_hours: 3}\n")
    later = Driver(more, tmp_path, gpus_per_run=1.0).run()
    assert later.trained
    assert later.proposals.spent[1] == pytest.approx((first.epochs + later.epochs) * 36 / 3600)
    assert Driver(more, tmp_path, gpus_per_run=1.0).run().trained == []


def test_a_warm_started_search_uses_only_points_stored_at_every_seed(tmp_path: Path) -> None:
    """Results come from the grid of another study, and from points of another search."""
    head, _, tail = GRID.partition("arms:")
    grid = head.replace("study: s\n", "study: other\n") + tail[tail.index("seeds:") :]
    grid = grid.replace("val_size: 200", "val_size: 200, test: false").replace(
        "seeds: 3", "seeds: 4"
    )
    grid += (
        "grid: {mix.law: [{beta: 0.5}, {beta: 8.0}, {beta: 50.0}], mix.switch_epoch: [4, 5, 10]}\n"
    )
    other = read(tmp_path, grid)
    first = Driver(read(tmp_path, STUDY), tmp_path, gpus_per_run=1.0).run()
    assert first.proposals.spent[1] == 0, "counted only for a budget of them"
    for run in other.runs():
        mix = run.config.mix
        if (mix.law, mix.switch_epoch, run.seed) != (Beta(alpha=0.5), 4, 1):
            first._write(run, run.config.epochs, noisy(run.config))
    enter(other, first.store, "mixsweep run other")
    text = STUDY.replace("points: 6", "points: 20\n  seed: 1\n  warm_start: true")
    study = read(tmp_path, text + "  budget: {gpu_hours: 1000}\n")
    driver = Driver(study, tmp_path, gpus_per_run=1.0)
    known = [point for point in points_of(driver) if point.is_known]
    # Of the grid 3 lie in the space at every seed: alpha 50 and switch 5 are outside it.
    assert driver.source.num_known == len(known) == 6 + 3
    assert driver.trained == []
    values = {(p.values["mix.law.alpha"], p.values["mix.switch_epoch"]) for p in known}
    assert {(0.5, 10), (8.0, 4), (8.0, 10)} < values
    assert (0.5, 4) not in values
    assert_scored(driver, known, "val/error")
    driver.run()
    assert len(points_of(driver)) == 20
    assert not {arm for arm, _ in driver.trained} & {point.arm for point in known}
    of_arms = len(study.arms) * 3 * 20
    assert driver.proposals.spent[1] == pytest.approx((driver.epochs + of_arms) * 36 / 3600)
    again = Driver(study, tmp_path).run()
    assert (again.trained, again.source.num_known) == ([], 0)


def test_noise_in_place_of_test_labels_changes_no_proposal_and_no_winner(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = CONFIRM.replace("epochs: 20", "epochs: 2").replace("[0, 20], step: 2", "[0, 2]")
    text = text.replace("seeds: 3", "seeds: 2").replace("points: 6", "points: 3")
    text = text.replace("val_size: 200", "val_size: 100, num_train: 64")
    text = text.replace("name: mlp", "name: mlp, hidden: [8]").replace("size: 128", "size: 32")
    study = read(tmp_path, text)
    loads: list[bool] = []

    def trained(config: TrainConfig) -> dict[str, float]:
        loads.append(config.data.test)
        *_, last = fit(config, load(config.data))
        return dict(last.metrics)

    honest = Driver(study, tmp_path / "honest", trained).run()
    read_split = mixup_core.images.data.datasets.read_split

    def with_noise(data: object, root: Path, split: str) -> Images:
        images = read_split(data, root, split)  # type: ignore[arg-type]
        if split != "test":
            return images
        return Images(pixels=images.pixels, labels=(images.labels * 7 + 3) % 10)

    monkeypatch.setattr(mixup_core.images.data.datasets, "read_split", with_noise)
    leaky = Driver(study, tmp_path / "leaky", trained).run()
    assert points_of(leaky) == points_of(honest)
    assert leaky.source.study == honest.source.study
    assert sum(loads) == 2 * 3 * 2, "only the confirmation reads test images"
    confirmed = honest.source.study.confirmation().runs()
    finals = [[r.records for r in read_results(confirmed, d.store)] for d in (honest, leaky)]
    assert finals[0] != finals[1], "the noise is seen where it may be"
