from reports.metrics import METRICS, show


def test_known_metrics_have_distinct_headings() -> None:
    headings = [metric.heading for metric in METRICS.values()]
    assert len(set(headings)) == len(headings)


def test_an_unknown_metric_is_shown_under_its_own_name_and_an_error_in_percent() -> None:
    assert (show("test/new_error").heading, show("test/new_error").scale) == (
        "test/new_error, %", 100.0
    )  # fmt: skip
    assert (show("train/norm").heading, show("train/norm").scale) == ("train/norm", 1.0)
