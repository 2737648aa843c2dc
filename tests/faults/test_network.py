"""Network: with a routable interface and a hostile environment, only the loopback listens."""

import os
import re
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import psutil
import pytest
import ray

from tests.conftest import CommandLine
from tests.faults.launches import Launch, Task

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300, func_only=True)]

LINE = Task(
    str(Path(__file__).with_name("line.yaml")), ("seeds=1", "base.epochs=400", "base.hidden=1024")
)
_ROUTABLE = "10.9.8.7"
_DECOYS = {"mixsweep-paper": ("lock", "chapter"), "mixsweep-empty": (), "mixsweep-1-aaaa~": ("a",)}


@pytest.fixture(scope="module", autouse=True)
def routable() -> Iterator[None]:
    """Give this network namespace an interface that packets of others could come in by."""
    for command in (
        "link add v0 type veth peer name v1", f"addr add {_ROUTABLE}/24 dev v0",
        "link set v0 up", "link set v1 up", "route add default dev v0",
    ):  # fmt: skip
        subprocess.run(["ip", *command.split()], check=True)
    yield
    subprocess.run(["ip", "link", "delete", "v0"], check=True)


def ray_variables() -> set[str]:
    """Return the name of every variable of the environment that the Python code of Ray spells."""
    sources = Path(ray.__file__).parent.rglob("*.py")
    texts = (source.read_text(errors="replace") for source in sources)
    return {name for text in texts for name in re.findall(r"\bRAY_[A-Za-z_]{3,60}\b", text)}


def hostile(value: str) -> dict[str, str]:
    """Return an environment that gives all of Ray's variables a value."""
    return dict.fromkeys(sorted(ray_variables() - {"RAY_ADDRESS"}), value)


HOSTILE: Mapping[str, dict[str, str]] = {
    "an empty address": {"RAY_ADDRESS": ""},
    "a local address": {"RAY_ADDRESS": "local"},
    "every variable 0": {**hostile("0"), "RAY_ADDRESS": ""},
    "every variable 1": {**hostile("1"), "RAY_ADDRESS": "local"},
    "every variable an address": hostile("0.0.0.0"),
    "a Redis elsewhere": {"RAY_REDIS_ADDRESS": f"{_ROUTABLE}:6379"},
}


def _open_folders() -> set[Path]:
    """Return the folders that everybody may write to."""
    test = ["-type", "d", "-perm", "-0002", "-print0"]
    found = ""
    for roots, depth in ((os.environ["TMPDIR"], "9"), ("/dev/shm", "9"), ("/tmp", "1")):
        command = ["find", roots, "-maxdepth", depth, *test]
        found += subprocess.run(command, capture_output=True, text=True, check=False).stdout
    return {Path(name) for name in found.split("\0") if name}


def _sockets() -> set[tuple[str, int]]:
    """Return the addresses that anybody may send to; a connected UDP socket has one peer."""
    found = [*psutil.net_connections("tcp"), *psutil.net_connections("udp")]
    listening = {psutil.CONN_LISTEN, psutil.CONN_NONE}
    return {tuple(one.laddr) for one in found if one.status in listening and not one.raddr}


def test_the_variables_of_ray_are_found() -> None:
    assert {"RAY_AUTH_MODE", "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER", "RAY_TMPDIR"} <= ray_variables()
    assert len(ray_variables()) > 100


@pytest.mark.parametrize("variables", HOSTILE.values(), ids=HOSTILE)
def test_a_launch_listens_on_the_loopback_alone_and_leaves_the_things_of_others(
    command_line: Callable[..., CommandLine], tmp_path: Path, variables: dict[str, str]
) -> None:
    place = Path(os.environ["TMPDIR"]) / "n"
    place.mkdir()
    for name, files in _DECOYS.items():
        (place / name).mkdir()
        for file in files:
            (place / name / file).write_text("mine")
    decoys = {path: path.is_file() and path.read_bytes() for path in place.rglob("*")}
    before, others = _sockets(), _open_folders()
    mixsweep = command_line(tmp_path / "runs", TMPDIR=str(place), **variables)
    try:
        with Launch(mixsweep, LINE, slots=1) as launch:
            launch.stage(LINE.study.runs()[0])
            seen = _sockets() - before
            launch.end(0)
        addresses = {address.removeprefix("::ffff:") for address, _ in seen}
        assert addresses <= {"127.0.0.1", "::1"}, seen
        assert seen, "nothing was seen of the cluster"
        assert _after(lambda: _open_folders() - others) == set()
        assert {p: p.is_file() and p.read_bytes() for p in place.rglob("*")} == decoys
    finally:
        shutil.rmtree(place)


def _after(find: Callable[[], set[Path]]) -> set[Path]:
    give_up_at = time.monotonic() + 10
    while (found := find()) and time.monotonic() < give_up_at:
        time.sleep(0.2)
    return found


@pytest.mark.parametrize(
    "address", [f"{_ROUTABLE}:6379", "127.0.0.1:9", "10.9.8.9:6379", "no.example:6379", "auto", "x"]
)
@pytest.mark.parametrize("is_option", [True, False])
def test_an_address_where_no_cluster_is_ends_a_launch_within_seconds(
    command_line: Callable[..., CommandLine], tmp_path: Path, address: str, is_option: bool
) -> None:
    option = ("--address", address) if is_option else ()
    mixsweep = command_line(tmp_path / "runs", **({} if is_option else {"RAY_ADDRESS": address}))
    began = time.monotonic()
    said = mixsweep("run", LINE.file, *option, code=2)
    assert time.monotonic() - began < 12
    assert said.stderr.count("\n") == 1, said.stderr
    assert not (tmp_path / "runs").exists()
