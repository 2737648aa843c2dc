from dataclasses import replace

from reports.numbers.runs import arrange, copies, run_records, runs_csv
from reports.pages.build import report_table
from tests.reports.synthetic import FINISHED, SMALL, ended, finish, make_study, rows_of


def test_runs_csv_has_a_row_per_run_with_varying_settings_and_final_metrics() -> None:
    results = ended(SMALL, {("midpoint", 1): {"epochs": 3}})
    text = runs_csv(SMALL, results)
    assert text.startswith("run_key,arm,seed,epochs,mix.law,mix.law.alpha,test/error,test/nll,")
    rows = rows_of(text)
    assert [(row["arm"], row["seed"]) for row in rows[:6]] == [
        *(("erm", str(seed)) for seed in range(5)),
        ("midpoint", "0"),
    ]
    stopped, whole = rows[6], rows[10]
    assert (stopped["epochs"], stopped["outcome"], stopped["test/error"]) == ("3", "partial", "")
    assert (whole["mix.law"], whole["mix.law.alpha"]) == ("beta", "1.0")
    (final,) = [r for r in results if (r.run.arm, r.run.seed) == ("uniform", 0)]
    assert float(whole["test/error"]) == final.records[-1].metrics["test/error"]
    assert whole["run_key"] == final.run.key


def test_runs_csv_of_a_study_that_varies_epochs_has_expected_and_trained_epochs() -> None:
    config = SMALL.arms["erm"]
    longer = type(config)(data=config.data, epochs=20, batch_size=100)
    study = replace(SMALL, arms={"erm": config, "long": longer}, seeds=(0,))
    record = run_records(study, [finish(run) for run in study.runs()])[1]
    assert (record["epochs"], record["epochs_expected"], record["outcome"]) == (10, 20, "partial")


def test_arms_with_equal_results_are_found_and_marked_in_the_caption() -> None:
    study = make_study(arms=("erm", "student", "teacher"))
    equal = ended(study, {})
    assert [*copies(study, equal)] == [("teacher", "student")]
    assert "teacher and student have equal results" in report_table(study, equal).caption
    assert not [*copies(study, ended(study, {("student", 3): {"error": 0.3}}))]
    assert not [*copies(SMALL, FINISHED)]


def test_results_are_arranged_in_study_order_with_missing_runs_added() -> None:
    arranged = arrange(SMALL, FINISHED[:0:-1])
    assert list(arranged) == list(SMALL.arms)
    assert all(list(by_seed) == list(SMALL.seeds) for by_seed in arranged.values())
    outcomes = [result.outcome for by_seed in arranged.values() for result in by_seed.values()]
    assert outcomes == ["missing", *["complete"] * 14]
