"""Requests: the study of a command line, its spelling, and its options."""

import shlex
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner, Result

from mixsweep.cli.main import commands
from mixsweep.cli.options import on_study, placement_options
from mixsweep.cli.recorded_line import command_line
from mixsweep.request import DONE, Request
from sweeps.machine.arguments import program
from sweeps.machine.home import Home
from sweeps.machine.sqlite_files import DatabaseError
from sweeps.reading.study_file import StudyError, load_study
from sweeps.state.ledger import enter
from sweeps.study.search import SearchHistory
from tests.mixsweep.cli.trained import train
from tests.sweeps.small_searches import asked, read


def request_of(home: Path, reference: str = "digits", *overrides: str, **places: Any) -> Request:
    return Request(
        reference=reference,
        overrides=overrides,
        study=load_study(reference, overrides),
        home=Home(folder=home, **places),
    )


@pytest.fixture
def typed(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Request]:
    """Return the request that a command makes of its arguments, without other settings."""
    for variable in ("HOME", "STORE", "OPTUNA"):
        monkeypatch.delenv(f"MIXSWEEP_{variable}", raising=False)
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)

    def parse(*arguments: str) -> Request:
        found = []
        command = click.command()(
            on_study(databases=True)(lambda request: found.append(request) or DONE)
        )
        said = CliRunner().invoke(command, arguments, standalone_mode=False)
        if said.exception is not None:
            raise said.exception
        (request,) = found
        return request

    return parse


def places(request: Request) -> tuple[Any, ...]:
    home = request.home
    return home.folder, home.store_url, home.tracking, home.optuna


def test_a_request_holds_the_study_and_the_given_home_store_and_addresses(
    typed: Callable[..., Request],
) -> None:
    request = typed("digits", "--set", "seeds=3", "--set", "base.epochs=2")
    assert (request.reference, request.overrides) == ("digits", ("seeds=3", "base.epochs=2"))
    assert request.study == load_study("digits", ["seeds=3", "base.epochs=2"])
    assert places(request) == (Path("runs"), None, None, None)
    servers = ("--tracking-uri", "http://t", "--optuna", "j")
    request = typed("digits", "--home", "h", "--store", "s3://b/s", *servers)
    assert places(request) == (Path("h"), "s3://b/s", "http://t", "j")


def test_missing_options_are_read_from_environment_variables(
    typed: Callable[..., Request], monkeypatch: pytest.MonkeyPatch
) -> None:
    names = ("MIXSWEEP_HOME", "MIXSWEEP_STORE", "MLFLOW_TRACKING_URI", "MIXSWEEP_OPTUNA")
    for name in names:
        monkeypatch.setenv(name, f"of-{name}")
    assert places(typed("digits")) == (Path("of-MIXSWEEP_HOME"), *(f"of-{n}" for n in names[1:]))
    assert places(typed("digits", "--home", "h", "--store", "s"))[:2] == (Path("h"), "s")


def test_a_study_that_cannot_be_read_is_refused_before_the_command_starts(
    typed: Callable[..., Request],
) -> None:
    with pytest.raises(StudyError, match=r"^digit: no such file or bundled study"):
        typed("digit")
    with pytest.raises(StudyError, match=r"^--set seeds=0: seeds: `seeds >= 1` must hold"):
        typed("digits", "--set", "seeds=0")


def test_a_file_as_home_is_refused(typed: Callable[..., Request]) -> None:
    with pytest.raises(click.BadParameter, match="is a file"):
        typed("digits", "--home", __file__)


def test_the_decorator_of_a_study_command_keeps_its_name_help_and_options() -> None:
    @click.command()
    @on_study()
    @click.option("--loud", is_flag=True)
    def sing(request: Request, loud: bool) -> int:
        """Sing of a study."""
        click.echo(f"{request.study.name} {loud}")
        return 1

    assert sing.name == "sing"
    said = CliRunner().invoke(sing, ["--help"]).output
    assert "Sing of a study." in said
    assert [name in said for name in ("STUDY", "--set", "--home", "--loud")] == [True] * 4
    sung = CliRunner().invoke(sing, ["digits", "--loud"], standalone_mode=False)
    assert (sung.return_value, sung.output) == (1, "digits True\n")


@pytest.mark.parametrize(
    "arguments",
    [
        ("digits",),
        ("digits", "--set", "seeds=[1, 2]", "--set", "description='a b'"),
        ("digits", "--home", "a home", "--store", "s3://bucket/a b"),
        ("digits", "--tracking-uri", "http://server:5000", "--optuna", "journal.log"),
    ],
)
def test_the_command_line_of_a_request_parses_to_an_equal_request(
    typed: Callable[..., Request], arguments: tuple[str, ...]
) -> None:
    request = typed(*arguments)
    name, verb, *again = shlex.split(request.spell("status"))
    assert (name, verb) == ("mixsweep", "status")
    assert typed(*again) == request


def test_the_command_line_of_a_request_has_its_options_and_no_password(
    tmp_path: Path,
) -> None:
    home = f"--home {tmp_path}"
    assert request_of(tmp_path).spell("run") == f"mixsweep run digits {home}"
    overridden = request_of(tmp_path, "digits", "seeds=[1, 2]", store_url="s3://b/s")
    assert (
        overridden.spell("sync")
        == f"mixsweep sync digits --set 'seeds=[1, 2]' {home} --store s3://b/s"
    )
    servers = request_of(
        tmp_path, tracking="http://me:secret@t:5000", optuna="postgresql://me:secret@o/db"
    )
    assert servers.spell("stop") == (
        f'mixsweep stop digits {home} --tracking-uri "$MLFLOW_TRACKING_URI" '
        '--optuna "$MIXSWEEP_OPTUNA"'
    )
    elsewhere = request_of(tmp_path, store_url="memory://me:secret@host/store")
    assert elsewhere.spell("run").endswith(f' {home} --store "$MIXSWEEP_STORE"')


def test_a_study_without_a_search_has_no_history(tmp_path: Path) -> None:
    request = request_of(tmp_path / "none")
    assert request.history == SearchHistory()
    assert request.grown is request.study
    assert list(tmp_path.iterdir()) == []


def test_a_point_proposed_during_a_report_is_not_part_of_the_report(tmp_path: Path) -> None:
    study, home = read(tmp_path), Home(folder=tmp_path / "runs")
    home.folder.mkdir()
    asked(study, home.optuna_url, 8, reopened=False)
    request = Request(reference="s.yaml", overrides=(), study=study, home=home)
    points = request.history.points
    asked(study, home.optuna_url, 4, reopened=False)
    assert request.history.points == points
    assert list(request.grown.points()) == list(study.grown(points).points())


def test_a_request_caches_its_search_history_until_refreshed(tmp_path: Path) -> None:
    study, home = read(tmp_path), Home(folder=tmp_path)
    request = Request(reference="s.yaml", overrides=("seeds=3",), study=study, home=home)
    assert request.history == SearchHistory()
    asked(study, home.optuna_url, 3, reopened=False)
    assert request.history == SearchHistory()
    later = request.refreshed()
    assert later == request
    assert len(later.history.points) == 3


def test_a_request_reads_its_results_from_its_store(tmp_path: Path) -> None:
    train(tmp_path / "home", but=("erm", 1))
    for request in (
        request_of(tmp_path / "home"),
        request_of(tmp_path / "other", store_url=str(tmp_path / "home" / "store")),
    ):
        outcomes = {(r.run.arm, r.run.seed): r.outcome for r in request.results()}
        assert outcomes.pop(("erm", 1)) != "complete"
        assert set(outcomes.values()) == {"complete"}
        assert len(outcomes) == 5
    assert {r.stage for r in request_of(tmp_path / "other").results()} == {None}


def test_results_under_other_settings_are_reported_with_their_number(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def said(*overrides: str) -> str:
        request_of(tmp_path, "digits", *overrides).say_elsewhere()
        told = capsys.readouterr()
        assert told.out == ""
        return told.err

    assert said() == ""
    train(tmp_path, "digits")
    assert said() == ""
    assert said("seeds=9") == "", "more seeds are the same settings"
    assert said("base.epochs=7") == (
        "6 finished runs stored here with base.epochs=3; you asked for 7\n"
    )
    assert said("study=other", "base.epochs=7") == ""


def test_one_run_under_other_settings_is_reported_in_the_singular(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arms = "arms={erm: {mix.law: erm}}"
    train(tmp_path, "digits", "seeds=1", arms)
    enter(load_study("digits", ["base.epochs=5"]), request_of(tmp_path).store, "a driver")
    request_of(tmp_path, "digits", arms, "base.epochs=7").say_elsewhere()
    assert capsys.readouterr().err == (
        "1 finished run stored here with base.epochs=3; you asked for 7\n"
    )


def test_stored_runs_of_the_study_are_not_reported_as_other_settings(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first, second = "a: {mix.law: erm}", "b: {mix.law: midpoint}"
    train(tmp_path, "digits", f"arms={{{first}, {second}}}", "baseline=a", "seeds=1")
    request_of(tmp_path, "digits", f"arms={{{second}, {first}}}", "baseline=a").say_elsewhere()
    assert capsys.readouterr().err == ""


def test_missing_databases_are_accepted_and_not_created(tmp_path: Path) -> None:
    request_of(tmp_path / "none").require_databases()
    assert list(tmp_path.iterdir()) == []


def test_a_damaged_tracking_database_is_refused_with_the_command_that_restores_it(
    tmp_path: Path,
) -> None:
    (tmp_path / "mlflow.db").write_text("no database")
    request = request_of(tmp_path, "digits", "seeds=3")
    with pytest.raises(DatabaseError) as caught:
        request.require_databases()
    assert str(caught.value).startswith(f"{tmp_path / 'mlflow.db'} ")
    assert f"{request.spell('sync')} restores it" in str(caught.value)
    request_of(tmp_path, tracking="http://server:5000").require_databases()


def test_a_file_at_the_path_of_the_artifacts_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "artifacts").write_text("no folder")
    with pytest.raises(DatabaseError, match="artifacts is not a folder"):
        request_of(tmp_path).require_databases()


def test_a_damaged_search_database_is_reported_only_for_searches(tmp_path: Path) -> None:
    (tmp_path / "optuna.db").write_text("no database")
    request_of(tmp_path).require_databases()
    searching = Request(
        reference="s.yaml", overrides=(), study=read(tmp_path), home=Home(folder=tmp_path)
    )
    for look in (searching.require_databases, lambda: searching.history):
        with pytest.raises(DatabaseError, match=r"optuna\.db .* the searches of this home"):
            look()


def test_the_data_of_every_arm_are_in_the_checksums(tmp_path: Path) -> None:
    for name in ("cats", "dogs"):
        for kind in ("a", "b"):
            folder = tmp_path / name / "train" / kind
            folder.mkdir(parents=True)
            (folder / "0.png").write_bytes(f"{name} {kind}".encode())
    data = "data: {name: image-folder, folder: cats, image_size: 8, test: false}"
    file = tmp_path / "s.yaml"
    file.write_text(
        f"study: x\nbase: {{{data}, model: {{name: mlp}}, epochs: 1, batch_size: 1}}\nseeds: 1\n"
        "arms: {cats: {}, dogs: {data.folder: dogs}, digits: {data.name: digits, "
        "data.folder: null, data.image_size: null}}\n"
    )
    found = request_of(tmp_path, str(file)).data_checksums()
    assert list(found) == ["image-folder", "digits"]
    assert list(found["image-folder"]) == ["cats/", "dogs/"]
    assert len(set(found["image-folder"].values())) == 2
    assert [len(digest) for digest in found["digits"].values()] == [64]


def test_a_problem_without_data_has_no_checksums(tmp_path: Path, toy_problem: None) -> None:
    file = tmp_path / "s.yaml"
    file.write_text("study: x\nproblem: toy\nbase: {epochs: 4}\nseeds: 2\n")
    assert request_of(tmp_path, str(file)).data_checksums() == {}


@pytest.mark.parametrize("number", ["nan", "inf", "-1", "free"])
@pytest.mark.parametrize("option", ["--price", "--gpus-per-run"])
def test_an_invalid_price_or_gpu_share_is_refused(option: str, number: str) -> None:
    said = CliRunner().invoke(commands, ["plan", "digits", option, number])
    assert said.exit_code == 2
    assert option in said.stderr


@click.command()
@placement_options
def _place(**options: Any) -> dict[str, Any]:
    return options


def _placed(*arguments: str) -> Result:
    return CliRunner().invoke(_place, arguments, standalone_mode=False)


def test_the_default_placement_has_one_cpu_per_run_and_an_automatic_gpu_share() -> None:
    assert _placed().return_value == {
        "slots": None,
        "gpus_per_run": None,
        "device": None,
        "keep_final_states": False,
    }


@pytest.mark.parametrize(
    ("arguments", "name", "value"),
    [
        (("--slots", "1"), "slots", 1),
        (("--gpus-per-run", "auto"), "gpus_per_run", "auto"),
        (("--gpus-per-run", "0"), "gpus_per_run", 0.0),
        (("--gpus-per-run", "0.125"), "gpus_per_run", 0.125),
        (("--device", "A100"), "device", "A100"),
        (("--keep-final-states",), "keep_final_states", True),
    ],
)
def test_each_placement_option_sets_its_field(
    arguments: tuple[str, ...], name: str, value: Any
) -> None:
    placed = _placed(*arguments).return_value
    assert placed == _placed().return_value | {name: value}


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("--slots", "0"),
        ("--gpus-per-run", "Auto"),
        ("--gpus-per-run", "nan"),
        ("--gpus-per-run", "inf"),
    ],
)
def test_invalid_placement_options_are_refused(option: str, value: str) -> None:
    placed = _placed(option, value)
    assert isinstance(placed.exception, click.BadParameter)
    assert placed.exception.exit_code == 2
    assert option in placed.exception.format_message()


def test_a_gpu_share_other_than_a_number_or_auto_is_refused() -> None:
    for wrong in ("some", "-1", ""):
        done = CliRunner().invoke(commands, ["run", "digits", "--gpus-per-run", wrong])
        assert done.exit_code == 2
        assert "--gpus-per-run" in done.output


@pytest.fixture
def nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the working folder, with a shell that finds no program."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path / "none"))
    return tmp_path


def test_a_program_outside_the_path_variable_is_shown_with_its_path(
    nowhere: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for started, named in [
        (str(nowhere / ".venv" / "bin" / "mixsweep"), ".venv/bin/mixsweep"),
        (".venv/bin/mixsweep", ".venv/bin/mixsweep"),
        ("/opt/bin/mixsweep", "/opt/bin/mixsweep"),
        ("/opt/mixsweep/cli/main.py", "mixsweep"),
        ("-c", "mixsweep"),
    ]:
        monkeypatch.setattr(sys, "argv", [started, "run"])
        assert program() == named
    assert request_of(Path("h")).spell("run") == "mixsweep run digits --home h"


def test_a_program_in_the_path_variable_is_shown_by_its_name(
    nowhere: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = nowhere / "none" / "mixsweep"
    found.parent.mkdir()
    found.touch(mode=0o755)
    monkeypatch.setattr(sys, "argv", [str(found)])
    assert program() == "mixsweep"


def test_a_program_path_with_a_space_is_quoted_in_the_command_line(
    nowhere: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", ["/my tools/mixsweep"])
    assert request_of(Path("h")).spell("run") == "'/my tools/mixsweep' run digits --home h"


@pytest.mark.parametrize(
    ("typed", "recorded"),
    [
        (["s.yaml", "--optuna", "mysql://host/secret"], "s.yaml --optuna '***'"),
        (["s.yaml", "--store=s3://b/secret"], "s.yaml --store '***'"),
        (
            ["--set", "seeds=[1, 2]", "s.yaml", "--home", "h"],
            "s.yaml --home h --set 'seeds=[1, 2]'",
        ),
        (["s.yaml", "--hook", "curl https://h/secret", "--loud"], "s.yaml --hook '***' --loud"),
        (["s.yaml", "--set", "a=http://me:secret@h/x"], "s.yaml --set 'a=http://***@h/x'"),
    ],
)
def test_the_recorded_command_line_has_no_value_of_an_address_or_a_shell_command(
    monkeypatch: pytest.MonkeyPatch, typed: list[str], recorded: str
) -> None:
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "http://me:secret@host")
    monkeypatch.setattr("mixsweep.request.load_study", lambda *_, **__: load_study("digits"))

    @click.command()
    @on_study(databases=True)
    @click.option("--hook")
    @click.option("--loud", is_flag=True)
    def sing(request: Request, hook: str, loud: bool) -> str:
        return command_line()

    group = click.Group(commands={"sing": sing})
    said = CliRunner().invoke(group, ["sing", *typed], standalone_mode=False)
    assert shlex.split(said.return_value) == shlex.split(f"mixsweep sing {recorded}")


def test_several_studies_run_in_order_and_give_the_largest_exit_code(
    tmp_path: Path,
) -> None:
    seen, codes = [], {"digits": 1, "quickstart": 0}

    @click.command()
    @on_study("many", databases=True)
    def command(request: Request) -> int:
        seen.append(request.study.name)
        return codes[request.study.name]

    line = ["digits", "quickstart", "--home", str(tmp_path)]
    assert command.main(line, standalone_mode=False) == 1
    assert seen == ["digits", "quickstart"]


def test_no_study_is_trained_if_one_of_several_cannot_be_read(tmp_path: Path) -> None:
    seen = []

    @click.command()
    @on_study("many", databases=True)
    def command(request: Request) -> int:
        seen.append(request.study.name)
        return 0

    with pytest.raises(StudyError):
        command.main(["digits", "no-such", "--home", str(tmp_path)], standalone_mode=False)
    assert seen == []
