"""A home in a folder of a group: its users train, stop, prune and report each other's studies."""

import os
import shutil
import stat
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import mixsweep
from mixup_core.store.checkpoints import Store
from sweeps.leasing.lease import read_progress
from tests.command_server import CommandServer
from tests.faults import test_refusals
from tests.faults.launches import wait_for

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root can become other users")
TEAM = 4500
USERS = {"ann": (4001, 4001, TEAM), "bob": (4002, 4002, TEAM), "eve": (4003, 4003)}
"""Ids of users, of their groups and of further groups. Eve is not in the team."""
STUDY = test_refusals.STUDY.replace("refusals", "teams")
Say = Callable[..., str]


@pytest.fixture
def place(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Folder that every user can enter; `team` in it belongs to the group."""
    with tempfile.TemporaryDirectory(prefix="team-") as name:
        place = Path(name)
        place.chmod(0o777)
        (place / "team").mkdir()
        os.chown(place / "team", 0, TEAM)
        (place / "team").chmod(0o2775)
        (place / "study.yaml").write_text(STUDY)
        monkeypatch.chdir(place)
        yield place


@pytest.fixture
def say(place: Path) -> Iterator[Say]:
    yield from _saying(place)


@pytest.fixture
def other_say(place: Path) -> Iterator[Say]:
    yield from _saying(place)


def _saying(place: Path) -> Iterator[Say]:
    """Run a command as a user, which must exit with a code; return what it prints."""
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith("MIXSWEEP")
    } | {"HOME": str(place), "TMPDIR": str(place), "MIXSWEEP_HOME": str(place / "team" / "runs")}

    python, path = interpreter()
    environment["PYTHONPATH"] = path
    with CommandServer(python) as server:

        def run(user: str, *words: str, code: int = 0) -> str:
            own = environment | {"HOME": str(place / user), "MIXSWEEP_DATA": str(place / user)}
            if not (place / user).exists():
                (place / user).mkdir(mode=0o700)
                os.chown(place / user, *USERS[user][:2])
            found, out, err = server.run(words, own, USERS[user])
            assert found == code, (user, words, err)
            assert "Permission" not in err, (user, words)
            return out + err

        yield run


def interpreter() -> tuple[str, str]:
    """Return an interpreter that all users may start, and its PYTHONPATH."""
    base = Path(sys.base_prefix)
    if all(parent.stat().st_mode & 0o005 == 0o005 for parent in (base, *base.parents)):
        return sys.executable, ""
    found = shutil.which(f"python3.{sys.version_info.minor}", path="/usr/bin:/usr/local/bin")
    if found is None:
        pytest.skip(f"no other user may enter {base}")
    installed = [place for place in sys.path if place.endswith("site-packages")]
    return found, os.pathsep.join((str(Path(mixsweep.__file__).parents[1]), *installed))


def modes(folder: Path) -> dict[str, str]:
    found = ((str(path.relative_to(folder)), path.lstat()) for path in folder.rglob("*"))
    return {name: f"{stat.S_IMODE(of.st_mode):o} {of.st_gid}" for name, of in found}


@pytest.mark.parametrize(("first", "second"), [("ann", "bob"), ("bob", "ann")])
def test_two_users_of_a_group_train_stop_prune_and_report_one_home(
    place: Path, say: Say, first: str, second: str
) -> None:
    run = ("run", "study.yaml", "--engine", "inline")
    say(first, *run)
    say(second, *run)
    assert "2 runs, 2 stored" in say(second, "plan", "study.yaml")
    longer = ("--set", "base.epochs=4")
    say(second, *run, *longer)
    say(first, *run, *longer, "--set", "seeds=2")
    say(second, "store", "prune", "study.yaml", *longer, "--yes")
    say(first, "store", "verify")
    say(second, "sync", "study.yaml", *longer)
    say(first, "report", "study.yaml", *longer)
    say(second, "report", "study.yaml", *longer)
    say(second, "report", "--out", "team/site")
    say(first, "report", "--out", "team/site")
    found = modes(place / "team")
    private = {name for name, mode in found.items() if int(mode.split()[1]) != TEAM}
    folders = {
        name for name, mode in found.items()
        if (place / "team" / name).is_dir() and not mode.startswith("2775")
    }  # fmt: skip
    unread = {name for name, mode in found.items() if not int(mode.split()[0], 8) & 0o040}
    assert (private, folders, unread) == (set(), set(), set())


def test_a_user_stops_the_driver_of_another_user(place: Path, say: Say, other_say: Say) -> None:
    say("bob", "plan", "study.yaml")
    say("ann", "plan", "study.yaml")
    long = ("run", "study.yaml", "--engine", "inline", "--set", "base.epochs=3000")
    driver = threading.Thread(target=lambda: other_say("ann", *long, code=130))
    driver.start()
    store = Store(str(place / "team" / "runs" / "store"))
    wait_for(lambda: read_progress(store, "teams"))
    said = say("bob", "run", "study.yaml", "--engine", "inline", code=3)
    assert "is already run by pid" in said
    say("bob", "stop", "teams", "--now")
    driver.join(timeout=60)
    assert not driver.is_alive()
    assert "not running" in say("bob", "stop", "teams")
    say("bob", "run", "study.yaml", "--engine", "inline", "--set", "base.epochs=4")


def test_a_user_with_read_permission_can_use_every_reading_command(place: Path, say: Say) -> None:
    say("ann", "run", "study.yaml", "--engine", "inline")
    before = modes(place / "team")
    for words in (
        ("plan", "study.yaml"), ("status", "teams"), ("status", "teams", "erm"), ("status",),
        ("report", "study.yaml", "--out", "eve/report"), ("store", "list"), ("store", "verify"),
        ("report", "teams", "--arms", "erm", "uniform"), ("share", "teams", "--out", "eve/t.zip"),
        ("report", "teams", "--epochs", "eve/rows.csv"), ("report", "--out", "eve/site"),
    ):  # fmt: skip
        say("eve", *words)
    assert modes(place / "team") == before
    said = say("eve", "run", "study.yaml", "--engine", "inline", "--set", "seeds=3", code=2)
    assert f"{place / 'team' / 'runs'}" in said
    assert "cannot be written by this user" in said


def test_a_home_in_any_other_folder_is_private(place: Path, say: Say) -> None:
    (place / "team").chmod(0o775)
    os.chown(place / "team", 4001, 4001)
    say("ann", "run", "study.yaml", "--engine", "inline")
    store = place / "team" / "runs" / "store"
    assert {mode.split()[0] for mode in modes(store).values()} == {"600", "700"}
