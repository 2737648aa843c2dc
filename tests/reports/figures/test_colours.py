from reports.figures.colours import arm_styles, line_styles
from tests.reports.synthetic import make_study


def test_a_plain_method_keeps_its_colour_for_any_arm_name_and_other_arms() -> None:
    plain = arm_styles(make_study().arms)
    assert [colour for colour, _ in plain.values()] == ["#0072B2", "#E69F00", "#009E73"]
    arms = make_study(arms=("uniform", "erm")).arms
    renamed = arm_styles({"mine": arms["uniform"], "theirs": arms["erm"]})
    assert (renamed["mine"], renamed["theirs"]) == (plain["uniform"], plain["erm"])


def test_an_arm_named_erm_with_another_method_does_not_get_the_colour_of_erm() -> None:
    study = make_study(arms=("midpoint",))
    assert arm_styles({"erm": study.arms["midpoint"]})["erm"][0] == "#E69F00"


def test_the_second_arm_of_a_method_takes_a_free_colour() -> None:
    erm = make_study().arms["erm"]
    styles = arm_styles({"erm": erm, "again": erm})
    assert styles["erm"][0] != styles["again"][0]


def test_thirty_arms_have_distinct_looks_in_their_order() -> None:
    study = make_study(arms=(*(f"beta-{index}" for index in range(29)), "erm"))
    styles = arm_styles(study.arms)
    assert len(set(styles.values())) == 30
    assert list(styles) == list(study.arms)


def test_a_line_of_a_plain_method_has_its_colour_for_any_first_arm() -> None:
    study = make_study(arms=("erm", "midpoint"))
    arms = {f"{arm} {place}": study.arms[arm] for arm in study.arms for place in range(6)}
    lines = {method: [f"{method} {place}" for place in reversed(range(6))] for method in study.arms}
    styles = arm_styles(arms)
    assert styles["erm 5"][0] == styles["midpoint 5"][0], "there are fewer colours than arms"
    assert line_styles(lines, styles) == {"erm": styles["erm 0"], "midpoint": styles["midpoint 0"]}


def test_lines_have_distinct_colours_until_all_are_used_and_then_distinct_looks() -> None:
    study = make_study(arms=tuple(f"beta-{index}" for index in range(40)))
    styles = arm_styles(study.arms)
    taken = [styles["beta-0"], styles["beta-1"]]
    lines = {arm: [arm] for arm in study.arms if arm not in ("beta-0", "beta-1")}
    found = line_styles(lines, styles, taken)
    assert len({*taken, *found.values()}) == 40
    first = list(found.values())[:5]
    assert len({colour for colour, _ in (*taken, *first)}) == 7
