import errno
from pathlib import Path

import pytest
from click.testing import CliRunner

from mixsweep.cli.main import commands
from sweeps.machine.home import Home


def test_addresses_replace_parts_of_the_home_folder(tmp_path: Path) -> None:
    tracking = "http://me:secret@server:5000"
    home = Home(folder=tmp_path, store_url="s3://b/store", tracking=tracking, optuna="journal.log")
    assert (home.store, home.tracking_uri, home.optuna_url) == (
        "s3://b/store", tracking, "journal.log",
    )  # fmt: skip
    assert str(home.shown_tracking) == "http://***@server:5000"
    assert home.artifact_location is None, "the server says where files go"


def test_an_empty_address_counts_as_not_given(tmp_path: Path) -> None:
    assert Home(folder=tmp_path, store_url="", tracking="", optuna="") == Home(folder=tmp_path)


def test_only_a_home_with_its_own_store_and_mlflow_database_is_self_contained(
    tmp_path: Path,
) -> None:
    assert Home(folder=tmp_path).is_self_contained
    assert Home(folder=tmp_path, store_url=str(tmp_path / "store")).is_self_contained
    for elsewhere in (str(tmp_path / "other"), "s3://bucket/store"):
        assert not Home(folder=tmp_path, store_url=elsewhere).is_self_contained
    assert not Home(folder=tmp_path, tracking="http://server:5000").is_self_contained


def test_the_address_of_the_database_in_the_home_counts_as_not_given(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "a home"
    (tmp_path / "link").symlink_to(home)
    monkeypatch.chdir(tmp_path)
    for own in ("sqlite:///a home/mlflow.db", f"sqlite:///{home}/../link/mlflow.db",
                f"sqlite+pysqlite:///{tmp_path}/a%20home/mlflow.db",
                f"sqlite:///file:{home}/mlflow.db?uri=true"):  # fmt: skip
        assert Home(folder=Path("link"), tracking=own) == Home(folder=Path("link")), own
    for other in ("sqlite:///mlflow.db", "postgresql://a home/mlflow.db"):
        assert Home(folder=home, tracking=other).tracking == other


@pytest.mark.parametrize(
    "verb", ["status", "status digits", "plan digits", "report digits", "run digits", "sync digits",
             "stop digits", "report digits --arms erm midpoint", "ui",
             "report digits --epochs x.csv",
             "store list", "store verify", "store prune digits", "plan"],
)  # fmt: skip
def test_circular_links_are_reported_by_every_command(tmp_path: Path, verb: str) -> None:
    loop = tmp_path / "loop"
    loop.symlink_to(loop)
    for home in (loop, loop / "below"):
        said = CliRunner().invoke(commands, [*verb.split(), "--home", str(home)])
        assert isinstance(said.exception, OSError)
        assert (said.exception.errno, said.exception.filename) == (errno.ELOOP, str(home))


@pytest.mark.parametrize("name", ["store_url", "tracking", "optuna"])
def test_a_leading_tilde_is_expanded_in_every_address_that_is_a_path(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    assert getattr(Home(folder=tmp_path, **{name: "~/x"}), name) == str(tmp_path / "x")
    assert getattr(Home(folder=tmp_path, **{name: "s3://~/x"}), name) == "s3://~/x"
