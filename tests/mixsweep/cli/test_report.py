import csv
from pathlib import Path

import pytest
from click.testing import CliRunner

from mixsweep.cli.main import commands
from mixup_core.store.checkpoints import Store
from sweeps.reading.study_file import load_study
from sweeps.state.statements import state
from tests.mixsweep.cli.trained import train


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["digits", "--arms", "uniform", "erm", "--out", "x"], "--arms cannot be used with --out"),
        (["digits", "--arms", "uniform", "erm", "--epochs", "x.csv"], "--arms cannot be used with"),
        (["digits", "--epochs", "x.csv", "--out", "x"], "--out cannot be used with --epochs"),
        (["digits", "--cite", "--predictions", "x.csv"], "--cite cannot be used with --predict"),
        (["digits", "table1", "--cite"], "a comparison cannot be used with --cite"),
        (["digits", "--metric", "test/error"], "--metric needs --arms"),
        (["digits", "--json"], "--json needs a comparison"),
    ],
)
def test_options_that_do_not_go_together_are_refused(words: list[str], says: str) -> None:
    said = CliRunner().invoke(commands, ["report", *words], standalone_mode=False)
    assert str(said.exception).startswith(says)


def test_a_report_with_other_seeds_after_a_report_widens_the_interval(tmp_path: Path) -> None:
    claims = "claims: [{says: A, source: B, that: {less: [uniform, erm], metric: test/error}}]"
    file = tmp_path / "digits.yaml"
    file.write_text(load_study("digits", ()).source + claims)
    study = train(tmp_path / "home", str(file), "seeds=4")
    state(study, Store(str(tmp_path / "home" / "store")))

    def confidence(seeds: int) -> float:
        out, home = tmp_path / str(seeds), tmp_path / "home"
        options = ["--set", f"seeds={seeds}", "--home", str(home), "--out", str(out)]
        said = CliRunner().invoke(commands, ["report", str(file), *options], standalone_mode=False)
        assert said.return_value == 0, said.stderr
        with (out / "tables" / "verdicts.csv").open() as verdicts:
            (row,) = csv.DictReader(verdicts)
        return float(row["confidence"])

    assert confidence(3) == pytest.approx(0.95)
    assert confidence(3) == pytest.approx(0.95)
    assert confidence(4) == pytest.approx(0.975)
    assert confidence(3) == pytest.approx(0.975)
    assert confidence(2) == pytest.approx(1 - 0.05 / 3)
