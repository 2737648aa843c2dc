import pytest

from reports.pages.screen import screen
from reports.tables.table import tabulate
from tests.reports.synthetic import FINISHED, SMALL, finish, make_study


def test_the_caption_explains_data_intervals_tests_and_power() -> None:
    caption = tabulate(SMALL, FINISHED, made_with="cpu, torch 2").caption
    for part in (
        "Fashion-MNIST",
        "10 000 test images",
        "95 % t interval over seeds 0-4",
        "All arms and the read-out were fixed in advance (selection rule: none).",
        "Read-out of each run: last epoch.",
        "Intervals and p values are adjusted for 2 comparisons (Bonferroni)",
        "The smallest detectable difference (power 0.8) is 0.81 points (midpoint) to 1.62 points "
        "(uniform), if the true standard deviation of the differences equals the observed one.",
        "d: standardised difference",
        "not the variation over samples of the data (standard deviation 0.42 points) or over kinds "
        "of processors.",
        "cpu, torch 2",
    ):
        assert part in caption


@pytest.mark.parametrize(
    ("errors", "is_told"), [((0.9, 0.899), True), ((0.9, 0.85), False), ((0.1, 0.9), False)]
)
def test_a_study_whose_arms_all_guess_has_a_warning_with_a_remedy(
    errors: tuple[float, float], is_told: bool
) -> None:
    study = make_study(("erm", "uniform"))
    of_arm = dict(zip(study.arms, errors, strict=True))
    table = tabulate(study, [finish(run, of_arm[run.arm]) for run in study.runs()])
    said = (
        "WARNING, no arm is better than guessing a class (90.00 % test error): train for more "
        "epochs, or raise optimizer.lr."
    )
    assert (said in table.caption) is is_told
    assert (said in " ".join(screen(study, table, ()).split())) is is_told
