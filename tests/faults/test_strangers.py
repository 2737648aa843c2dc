"""Other users of this machine can reach no file, socket or port of a launch in progress."""

import importlib
import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import grpc
import psutil
import pytest
import requests

from tests.conftest import CommandLines
from tests.faults.launches import TWO_LAWS, Launch

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300, func_only=True)]

_STRANGER = 65534
_SHARED_MEMORY = Path("/dev/shm")
_SERVICES = ("gcs_service", "node_manager", "core_worker", "reporter", "runtime_env_agent")
"""Files with Ray's gRPC services, in `ray.core.generated`."""
_READING = ("Get", "Check", "List", "Num")


@pytest.fixture
def place() -> Iterator[Path]:
    """Return a folder that everybody can look into, as the folders above a home usually are."""
    folder = Path(os.environ["TMPDIR"]) / "open"
    folder.mkdir(mode=0o755)
    yield folder
    shutil.rmtree(folder)


@pytest.mark.parametrize(
    "umask",
    [0o022, *(pytest.param(umask, marks=pytest.mark.long) for umask in (0o000, 0o002, 0o077))],
    ids="{:03o}".format,
)
def test_another_user_can_neither_write_files_nor_connect_during_a_launch(
    command_line: CommandLines, place: Path, umask: int
) -> None:
    under = ("sh", "-c", f'umask {umask:03o} && exec "$@"', "sh")
    ours = replace(command_line(place / "runs"), data=place / "data", prefix=under)
    ours.home.mkdir(mode=0o755)  # by its user, who lets others read
    before = _listening()
    roots = place.parent, _SHARED_MEMORY
    left_by_others = _writable_for_a_stranger(*roots)
    with Launch(ours, TWO_LAWS) as launch:
        launch.stage(TWO_LAWS.study.runs()[0])
        assert _writable_for_a_stranger(*roots) == left_by_others
        _assert_refused_without_the_token(_listening() - before, _token_of(launch))
        launch.end(0)
    assert _writable_for_a_stranger(*roots) == left_by_others


def _writable_for_a_stranger(*roots: Path) -> list[Path]:
    """Return what another user may write to or connect to, apart from shared sticky folders."""
    found = subprocess.run(
        ["find", *roots, "-writable", "!", "-type", "l", "!", "-perm", "-1777", "-print0"],
        user=_STRANGER, group=_STRANGER, extra_groups=[], cwd="/",
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert all("Permission denied" in line for line in found.stderr.splitlines()), found.stderr
    return sorted(Path(name) for name in found.stdout.split("\0") if name)


def _listening() -> set[tuple[str, int]]:
    """Return address and port of every listening socket of this network namespace."""
    found = psutil.net_connections("tcp")
    return {tuple(one.laddr) for one in found if one.status == psutil.CONN_LISTEN}


def _token_of(launch: Launch) -> str:
    workers = psutil.Process(launch.process.pid).children(recursive=True)
    return next(
        variables["RAY_AUTH_TOKEN"]
        for variables in (worker.environ() for worker in workers)
        if "RAY_AUTH_TOKEN" in variables
    )


def _assert_refused_without_the_token(listening: set[tuple[str, int]], token: str) -> None:
    """Assert that all ports are on the loopback and answer only with the token."""
    assert {address.removeprefix("::ffff:") for address, _ in listening} <= {"127.0.0.1", "::1"}
    ports = sorted({port for _, port in listening})
    bearer = {"authorization": f"Bearer {token}"}
    known = {port: _granted(_answers(port, bearer)) for port in ports}
    assert any(known.values()), f"nothing answers the token: {known}"
    opened = []
    for wrong in ({}, {"authorization": "Bearer 0123456789abcdef"}):
        for port in ports:
            codes = _answers(port, wrong)
            opened += [(port, name, wrong) for name in _granted(codes)]
            opened += [
                (port, name, wrong, codes[name])
                for name in known[port]
                if codes[name] != grpc.StatusCode.UNAUTHENTICATED
            ]
            if _status(port, wrong) in range(200, 300):
                opened.append((port, "GET /", wrong))
    assert opened == []


def _granted(codes: Mapping[str, grpc.StatusCode]) -> list[str]:
    return [name for name, code in codes.items() if code == grpc.StatusCode.OK]


def _answers(port: int, headers: Mapping[str, str]) -> dict[str, grpc.StatusCode]:
    """Return the answers of a port to every read-only call of Ray."""
    codes = {}
    with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
        for name in _calls():
            call = channel.unary_unary(name)
            try:
                call(b"", timeout=2, metadata=tuple(headers.items()))
                codes[name] = grpc.StatusCode.OK
            except grpc.RpcError as error:
                codes[name] = error.code()
            if codes[name] in {grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED}:
                break  # speaks another protocol
    return codes


def _calls() -> list[str]:
    calls = []
    for file in _SERVICES:
        described = importlib.import_module(f"ray.core.generated.{file}_pb2").DESCRIPTOR
        for service in described.services_by_name.values():
            calls += [
                f"/{service.full_name}/{method.name}"
                for method in service.methods
                if method.name.startswith(_READING)
            ]
    return calls


def _status(port: int, headers: Mapping[str, str]) -> int | None:
    """Return the HTTP status of a port; None if it does not speak HTTP."""
    try:
        return requests.get(f"http://127.0.0.1:{port}/", headers=headers, timeout=2).status_code
    except requests.RequestException:
        return None
