from pathlib import Path

import pytest

from sweeps.home import Home, masked


def test_everything_lies_in_the_folder_unless_an_address_says_otherwise(tmp_path: Path) -> None:
    home = Home(folder=tmp_path)
    assert home.store == str(tmp_path / "store")
    assert home.tracking_uri == f"sqlite:///{tmp_path}/mlflow.db"
    assert home.optuna_url == f"sqlite:///{tmp_path}/optuna.db"
    assert home.artifact_location == (tmp_path / "artifacts").as_uri()
    assert home.report_of("digits") == tmp_path / "reports" / "digits"
    assert list(tmp_path.iterdir()) == []


def test_addresses_take_the_place_of_parts_of_the_folder(tmp_path: Path) -> None:
    tracking = "http://me:secret@server:5000"
    home = Home(folder=tmp_path, store_url="s3://b/store", tracking=tracking, optuna="journal.log")
    assert (home.store, home.tracking_uri, home.optuna_url) == (
        "s3://b/store", tracking, "journal.log",
    )  # fmt: skip
    assert home.tracking_server == "http://me:***@server:5000"
    assert home.artifact_location is None, "the server says where files go"


def test_files_of_a_database_elsewhere_stay_in_the_folder(tmp_path: Path) -> None:
    home = Home(folder=tmp_path, tracking="postgresql://server/mlflow")
    assert home.artifact_location == (tmp_path / "artifacts").as_uri()


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("postgresql://me:secret@server/db", "postgresql://me:***@server/db"),
        ("postgresql://server/db?user=me&password=secret", "postgresql://server/db?user=me&password=***"),
        ("run s --store s3://b --optuna mysql://u:p@h/d", "run s --store s3://b --optuna mysql://u:***@h/d"),
        ("http://server:5000/a@b", "http://server:5000/a@b"),
        ("sqlite:////home/me/runs/optuna.db", "sqlite:////home/me/runs/optuna.db"),
    ],
)  # fmt: skip
def test_passwords_are_masked_and_nothing_else(text: str, shown: str) -> None:
    assert masked(text) == shown
