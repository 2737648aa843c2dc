from reports.figures.colours import arm_styles
from tests.reports.synthetic import make_study


def test_a_plain_method_keeps_its_colour_for_any_arm_name_and_other_arms() -> None:
    plain = arm_styles(make_study().arms)
    assert [colour for colour, _ in plain.values()] == ["#0072B2", "#E69F00", "#009E73"]
    arms = make_study(arms=("uniform", "erm")).arms
    renamed = arm_styles({"mine": arms["uniform"], "theirs": arms["erm"]})
    assert (renamed["mine"], renamed["theirs"]) == (plain["uniform"], plain["erm"])


def test_thirty_arms_have_distinct_looks_in_their_order() -> None:
    study = make_study(arms=(*(f"beta-{index}" for index in range(29)), "erm"))
    styles = arm_styles(study.arms)
    assert len(set(styles.values())) == 30
    assert list(styles) == list(study.arms)
