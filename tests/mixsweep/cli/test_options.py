"""Requests and options: the study of a command line, its spelling, paths and addresses."""

import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner

from mixsweep.cli.main import commands
from mixsweep.cli.options import command_line, on_study
from mixsweep.request import DONE, Request
from sweeps.machine.home import Home
from sweeps.reading.study_file import StudyError, load_study
from tests.mixup_core.small_files import fill


def request_of(home: Path, reference: str = "digits", **places: Any) -> Request:
    return Request(
        reference=reference,
        overrides=(),
        study=load_study(reference),
        home=Home(folder=home, **places),
    )


def typed(*arguments: str) -> Request:
    """Return the request that a command makes of its arguments."""
    found: list[Request] = []
    command = click.command()(
        on_study(databases=True)(lambda request: found.append(request) or DONE)
    )
    CliRunner().invoke(command, arguments, standalone_mode=False, catch_exceptions=False)
    (request,) = found
    return request


def test_a_study_that_cannot_be_read_is_refused_before_the_command_starts() -> None:
    with pytest.raises(StudyError, match=r"^digit: no such file or bundled study"):
        typed("digit")
    with pytest.raises(StudyError, match=r"^--set seeds=0: seeds: `seeds >= 1` must hold"):
        typed("digits", "--set", "seeds=0")
    with pytest.raises(
        StudyError, match=r"^with --set base.epochs=10:\nquickstart.yaml:\d+: readout"
    ):
        typed("quickstart", "--set", "base.epochs=10")
    with pytest.raises(StudyError, match=r"a setting needs its own --set: --set base.epochs=9"):
        typed("base.epochs=9")


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
    arguments: tuple[str, ...],
) -> None:
    request = typed(*arguments)
    name, verb, *again = shlex.split(request.spell("status"))
    assert (name, verb) == ("mixsweep", "status")
    assert typed(*again) == request


def test_the_command_line_of_a_request_has_variables_in_place_of_logins(tmp_path: Path) -> None:
    home = f"--home {tmp_path}"
    optuna = "postgresql://me:secret@o/db"
    servers = request_of(tmp_path, tracking="http://me:secret@t:5000", optuna=optuna)
    assert servers.spell("stop") == (
        f'mixsweep stop digits {home} --tracking-uri "$MLFLOW_TRACKING_URI" '
        '--optuna "$MIXSWEEP_OPTUNA"'
    )
    elsewhere = request_of(tmp_path, store_url="memory://me:secret@host/store")
    assert elsewhere.spell("run").endswith(f' {home} --store "$MIXSWEEP_STORE"')


def test_the_data_of_every_arm_are_in_the_checksums(tmp_path: Path) -> None:
    for first, name in enumerate(("cats", "dogs")):
        fill(tmp_path / name / "train", first, a=1, b=1)
    data = "data: {name: image-folder, folder: cats, image_size: 8, test: false}"
    file = tmp_path / "s.yaml"
    file.write_text(
        f"study: x\nbase: {{{data}, model: {{name: mlp}}, epochs: 1, batch_size: 1}}\nseeds: 1\n"
        "headline: train/loss\n"
        "arms: {cats: {}, dogs: {data.folder: dogs}, digits: {data.name: digits, "
        "data.folder: null, data.image_size: null}}\n"
    )
    found = request_of(tmp_path, str(file)).data_checksums()
    assert list(found) == ["image-folder", "digits"]
    assert list(found["image-folder"]) == ["cats/", "dogs/"]
    assert len(set(found["image-folder"].values())) == 2
    assert [len(digest) for digest in found["digits"].values()] == [64]
    (tmp_path / "more").mkdir()
    (tmp_path / "dogs").rename(tmp_path / "more" / "cats")
    file.write_text(file.read_text().replace("folder: dogs", "folder: more/cats"))
    renamed = request_of(tmp_path, str(file)).data_checksums()["image-folder"]
    assert list(renamed) == ["cats/", "cats/ (2)"]
    assert list(renamed.values()) == list(found["image-folder"].values())


@pytest.mark.parametrize(
    ("words", "recorded"),
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
    monkeypatch: pytest.MonkeyPatch, words: list[str], recorded: str
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
    said = CliRunner().invoke(group, ["sing", *words], standalone_mode=False)
    assert shlex.split(said.return_value) == shlex.split(f"mixsweep sing {recorded}")


def test_several_studies_run_in_order_unless_one_cannot_be_read(tmp_path: Path) -> None:
    seen, codes = [], {"digits": 1, "quickstart": 0}

    @click.command()
    @on_study("many", databases=True)
    def command(request: Request) -> int:
        seen.append(request.study.name)
        return codes[request.study.name]

    home = ["--home", str(tmp_path)]
    with pytest.raises(StudyError):
        command.main(["digits", "no-such", *home], standalone_mode=False)
    assert seen == []
    assert command.main(["digits", "quickstart", *home], standalone_mode=False) == 1
    assert seen == ["digits", "quickstart"]


def paths_of(command: click.Command) -> Iterator[tuple[str, click.Path]]:
    if isinstance(command, click.Group):
        for part in command.commands.values():
            yield from paths_of(part)
    for parameter in command.params:
        if isinstance(parameter.type, click.Path):
            yield f"{command.name} {parameter.opts[0]}", parameter.type


PATHS = dict(paths_of(commands))


@pytest.mark.parametrize("name", PATHS)
def test_a_leading_tilde_is_expanded_to_the_home_folder(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    place = tmp_path / "x"
    place.mkdir() if PATHS[name].dir_okay else place.touch()
    assert PATHS[name].convert("~/x", None, None) == place


SECRET = {
    "--store": ("MIXSWEEP_STORE", "s3://me:cAnArY@host/x"),
    "--optuna": ("MIXSWEEP_OPTUNA", "postgresql://me:cAnArY@host/db"),
    "--tracking-uri": ("MLFLOW_TRACKING_URI", "http://me:cAnArY@host:5000"),
    "--address": ("RAY_ADDRESS", "ray://me:cAnArY@host:10001"),
}
ADDRESSES = [
    (verb, option)
    for verb, command in commands.commands.items()
    if not isinstance(command, click.Group)
    for parameter in command.params
    for option in parameter.opts
    if option in SECRET
]


@pytest.mark.parametrize(("verb", "option"), ADDRESSES)
def test_an_address_with_a_login_is_refused_as_an_option(verb: str, option: str) -> None:
    variable, address = SECRET[option]
    said = CliRunner().invoke(commands, [verb, "digits", option, address])
    assert said.exit_code == 2
    shown = " ".join(said.output.split())
    assert variable in shown or "RAY_API_SERVER_ADDRESS" in shown
    assert "cAnArY" not in said.output
