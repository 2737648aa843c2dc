"""Arguments: an address with a secret leaves the command line, and nothing else does."""

import os

import pytest

from mixup_core.addresses import store_address
from sweeps.machine.arguments import (
    hide_addresses,
    moved_to_environment,
    read_names_as_utf8,
    was_option,
)
from sweeps.machine.databases import database_address

OPTIONS = {("--store", "S"): store_address, ("--optuna", "O"): database_address}


@pytest.mark.parametrize(
    ("typed", "kept", "moved"),
    [
        ("run x --optuna pg://a:b@h/d --store s3://b", "run x --store s3://b", "pg://a:b@h/d"),
        ("run x --optuna=pg://h/d?k=v", "run x", "pg://h/d?k=v"),
    ],
)
def test_an_address_with_a_secret_moves_from_arguments_to_the_environment(
    typed: str, kept: str, moved: str
) -> None:
    assert moved_to_environment(typed.split(), OPTIONS) == (kept.split(), {"O": moved})


@pytest.mark.parametrize(
    "typed",
    [
        "run x --optuna sqlite:////a/b.db --store=runs",
        "compare --store s3://a:b@h --store s3://c",
        "run x --optuna",
    ],
)
def test_arguments_without_a_secret_are_kept(typed: str) -> None:
    assert moved_to_environment(typed.split(), OPTIONS) == (typed.split(), {})


def test_a_process_without_a_secret_address_is_not_restarted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("os.execve", lambda *_: pytest.fail("started anew"))
    monkeypatch.setattr(
        "sys.orig_argv", ["python", "-m", "mixsweep", "run", "x", "--store", "runs"]
    )
    hide_addresses(OPTIONS)


def test_only_the_restarted_process_itself_learns_that_an_option_was_moved(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    restarted: list[dict[str, str]] = []
    monkeypatch.setattr("sweeps.machine.arguments._moved", set())
    monkeypatch.setattr("os.execve", lambda *given: restarted.append(given[2]))
    monkeypatch.setattr("sys.orig_argv", ["python", "run", "x", "--store", "s3://a:b@h"])
    hide_addresses(OPTIONS)
    assert not was_option("S")
    monkeypatch.setattr("os.environ", dict(restarted[0]))
    monkeypatch.setattr("sys.orig_argv", ["python", "run", "x"])
    hide_addresses(OPTIONS)
    hide_addresses(OPTIONS)  # each entry point calls it
    assert (was_option("S"), was_option("O"), len(restarted)) == (True, False, 1)
    assert os.environ.keys() - restarted[0].keys() == set()
    assert restarted[0].keys() - os.environ.keys() == {"_MIXSWEEP_MOVED"}


def test_a_process_with_a_non_utf8_locale_restarts_in_utf8_mode(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    started: list[tuple[str, list[str], dict[str, str]]] = []
    monkeypatch.setattr("os.execve", lambda *given: started.append(given))
    monkeypatch.setattr("sys.orig_argv", ["python", "-m", "mixsweep", "list"])
    read_names_as_utf8()
    assert started == []
    monkeypatch.setattr("sys.getfilesystemencoding", lambda: "iso8859-1")
    read_names_as_utf8()
    ((program, arguments, environment),) = started
    assert arguments == [program, "-X", "utf8", "-m", "mixsweep", "list"]
    assert environment["PYTHONUTF8"] == "1"
