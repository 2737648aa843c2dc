"""Jobs behind a real reverse proxy with TLS of an own authority and a login."""

import gc
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from sweeps.running.jobs import Cluster
from tests.sweeps.running.proxy import COOKIE, LOGIN, Proxy, needs_nginx, proxy
from tests.sweeps.running.ray_server import RUNNING, RayServer, ended, ray_server

pytestmark = [
    needs_nginx,
    pytest.mark.filterwarnings("ignore:ssl=None is deprecated:DeprecationWarning"),
    # Ray's client leaves the ends of TLS connections to the garbage collector.
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

VARIABLES = (
    "RAY_ADDRESS", "RAY_API_SERVER_ADDRESS", "RAY_USAGE_STATS_ENABLED", "RAY_AUTH_MODE",
    "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "RAY_JOB_HEADERS",
)  # fmt: skip


@pytest.fixture(scope="module", autouse=True)
def collected_here() -> Iterator[None]:
    """Collect garbage before other tests do, for which it would be a warning."""
    yield
    gc.collect()


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[RayServer, Proxy]]:
    with ray_server() as server, proxy(server.address, tmp_path_factory.mktemp("p")) as before:
        yield server, before


@pytest.fixture
def server(
    running: tuple[RayServer, Proxy], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Iterator[RayServer]:
    """Return the server; the user trusts the authority of the proxy and has Ray's token."""
    server, before = running
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in VARIABLES:
        monkeypatch.setenv(name, "")
        monkeypatch.delenv(name)
    monkeypatch.setenv("SSL_CERT_FILE", str(before.authority))
    monkeypatch.setenv("RAY_AUTH_TOKEN", server.token)
    yield server
    server.token = RayServer().token


@pytest.fixture
def address(running: tuple[RayServer, Proxy]) -> str:
    return running[1].address


def give(monkeypatch: pytest.MonkeyPatch, **headers: str) -> None:
    monkeypatch.setenv("RAY_JOB_HEADERS", json.dumps(headers))


@pytest.mark.parametrize(
    ("path", "headers"),
    [
        ("basic", {"Authorization": LOGIN}),
        ("plain", {"Authorization": LOGIN}),
        ("session", {"Cookie": COOKIE}),
    ],
)
def test_a_job_is_sent_and_followed_through_a_login(
    server: RayServer, address: str, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str], path: str, headers: dict[str, str],
) -> None:  # fmt: skip
    """`plain` lets no WebSocket pass."""
    give(monkeypatch, **headers)
    server.jobs, server.states = (), [RUNNING, ended(driver_exit_code=3)]
    server.logs = [("one\n", "two\n")]
    cluster = Cluster.connect(f"{address}/{path}")
    assert cluster.job_of({}) is None
    cluster.start("j", "true", {}, {})
    assert server.submitted.pop()["submission_id"] == "j"
    assert cluster.follow("j") == 3
    assert capsys.readouterr() == ("one\ntwo\n", "")
    assert LOGIN not in server.headers.values()
