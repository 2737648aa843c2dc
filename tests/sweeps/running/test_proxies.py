"""Jobs behind a real reverse proxy with TLS of an own authority and a login."""

import gc
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
import requests

from sweeps.running.jobs import Cluster, ClusterError
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


def refusal(address: str) -> str:
    with pytest.raises(ClusterError) as caught:
        Cluster.connect(address)
    told = str(caught.value)
    assert told.startswith(f"{address}: ")
    assert "swordfish" not in told
    assert len(told.splitlines()) <= 5
    return told


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


@pytest.mark.parametrize(
    ("path", "seen"),
    [
        ("basic", '(HTTP status 401, Basic realm="Ray of the lab"); put its login into RAY_JOB_H'),
        (
            "session",
            "redirects (HTTP status 302) to https://login.example.org, not to Ray; put",
        ),
        ("closed", "refuses the request (HTTP status 403)"),
        ("page", "answers with HTTP status 200 and text/html, not as a Ray cluster does"),
        ("nothing", "answers with HTTP status 404 and text/html, not as a Ray cluster does"),
    ],
)
def test_a_refusal_names_the_answer_of_the_proxy(
    server: RayServer, address: str, path: str, seen: str
) -> None:
    told = refusal(f"{address}/{path}")
    assert told.startswith(f"{address}/{path}: nginx/")
    assert seen in told
    assert "hidden" not in told
    assert "no token" not in told
    assert "`ray job submit`" in told


def test_a_wrong_login_is_not_called_a_wrong_token(
    server: RayServer, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    give(monkeypatch, Authorization="Basic eDp5")
    assert "asks for a login (HTTP status 401, Basic" in refusal(f"{address}/basic")


def test_a_proxy_that_passes_the_login_on_as_a_token_is_named(
    server: RayServer, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    give(monkeypatch, Authorization=LOGIN)
    told = refusal(f"{address}/passing")
    assert "refuses this token" in told
    assert 'proxy_set_header Authorization ""' in told


def test_a_cluster_without_token_behind_a_login_must_be_accepted(
    server: RayServer, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.token = ""
    give(monkeypatch, Authorization=LOGIN)
    told = refusal(f"{address}/basic")
    assert "requires no token, so whoever has the headers in RAY_JOB_HEADERS can run code" in told
    monkeypatch.setenv("RAY_AUTH_MODE", "disabled")
    assert Cluster.connect(f"{address}/basic").job_of({}) is None


def test_an_untrusted_certificate_is_named(
    server: RayServer, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SSL_CERT_FILE")
    told = refusal(f"{address}/basic")
    assert "certificate verify failed" in told
    assert "set SSL_CERT_FILE" in told
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", requests.certs.where())
    assert "set REQUESTS_CA_BUNDLE" in refusal(f"{address}/basic")
