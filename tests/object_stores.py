"""Object stores: real S3 servers for tests, on the loopback.

Each has a bucket `studies`, and a bucket `full` that accepts no object. moto starts quickly but
answers one request at a time, so it cannot test concurrent conditional puts. Ceph's gateway is used
in practice: it has many threads and checks signatures.
"""

import contextlib
import functools
import shutil
import subprocess
import sys
import tempfile
import uuid
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

from tests.servers import free_port, listens, running

KEY, SECRET = "an-access-key", "a-secret-key"
NAMES = ["moto", pytest.param("ceph", marks=pytest.mark.long)]
"""Names of the stores, as parameters of tests; `make test` uses the one that starts quickly."""

_MOTO = """
import sys
from moto.server import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import run_simple
from werkzeug.wrappers import Request, Response

CODE = "<Error><Code>QuotaExceeded</Code><Message>it is full</Message></Error>"
moto = DomainDispatcherApplication(create_backend_app)

@Request.application
def answer(request):
    parts = request.path.strip("/").split("/")
    if request.method == "PUT" and parts[0] == "full" and len(parts) > 1:
        return Response(CODE, 403, content_type="application/xml")
    return moto

# One request at a time: moto tests a condition and puts in two steps.
run_simple("127.0.0.1", int(sys.argv[1]), answer)
"""


@contextlib.contextmanager
def moto(**options: str) -> Iterator[Mapping[str, str]]:
    """Run moto's S3 server; yield the environment of its clients.

    Args:
        options: Settings, as environment variables of the server.
    """
    for package in ("moto", "s3fs"):
        pytest.importorskip(package, reason=f"{package} is not installed: NOT TESTED on S3")
    port = free_port()
    command = [sys.executable, "-c", _MOTO, str(port)]
    with running(command, lambda: listens(port), **options):
        yield _clients(port)


_CEPH = """
[global]
fsid = {fsid}
mon host = v2:127.0.0.1:{monitor_port}
public addr = 127.0.0.1
cluster addr = 127.0.0.1
auth cluster required = none
auth service required = none
auth client required = none
ms mon client mode = crc
run dir = {folder}
admin socket =
log file =
mon data = {folder}/monitor
mon allow pool size one = true
mon data avail crit = 0
mon cluster log file =
paxos propose interval = 0.05
osd data = {folder}/osd
osd objectstore = memstore
osd crush chooseleaf type = 0
osd pool default size = 1
osd pool default pg num = 1
osd pool default pg autoscale mode = off
memstore device bytes = 1073741824
rgw frontends = beast endpoint=127.0.0.1:{port}
rgw bucket quota ttl = 0
[mon]
public addrv = v2:127.0.0.1:{monitor_port}
"""


@contextlib.contextmanager
def ceph() -> Iterator[Mapping[str, str]]:
    """Run Ceph's object gateway on a cluster of one monitor and one disk in memory.

    It needs neither manager, root nor key; it listens on the loopback and ends with the `with`.
    """
    pytest.importorskip("s3fs", reason="s3fs is not installed: NOT TESTED on S3")
    programs = ("ceph", "ceph-mon", "ceph-osd", "radosgw", "radosgw-admin")
    if not all(map(shutil.which, programs)):
        pytest.skip("Ceph is not installed (apt-get install ceph-mon ceph-osd radosgw): NOT TESTED")
    port, fsid = free_port(), str(uuid.uuid4())
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="c-")))
        for name in ("monitor", "osd"):
            (folder / name).mkdir()
        settings = folder / "ceph.conf"
        settings.write_text(
            _CEPH.format(folder=folder, fsid=fsid, port=port, monitor_port=free_port())
        )

        def call(program: str, *arguments: str) -> None:
            subprocess.run(
                [program, "-c", str(settings), *arguments],
                check=True, capture_output=True, timeout=60, cwd="/",
            )  # fmt: skip

        def answers() -> bool:
            with contextlib.suppress(subprocess.SubprocessError):
                call("ceph", "--connect-timeout=5", "osd", "new", fsid)
                return True
            return False

        def start(is_ready: Callable[[], bool], *command: str) -> None:
            program, *arguments = command
            stack.enter_context(running([program, "-f", "-c", str(settings), *arguments], is_ready))

        call("ceph-mon", "-i", "a", "--mkfs", "--fsid", fsid)
        start(answers, "ceph-mon", "-i", "a")
        call("ceph-osd", "-i", "0", "--mkfs", "--osd-uuid", fsid)
        start(lambda: True, "ceph-osd", "-i", "0")
        start(lambda: listens(port), "radosgw", "-n", "client.rgw")
        call(
            "radosgw-admin", "user", "create", "--uid=studies", "--display-name=studies",
            f"--access-key={KEY}", f"--secret-key={SECRET}",
        )  # fmt: skip
        clients = _clients(port)
        full = ("--quota-scope=bucket", "--bucket=full")
        call("radosgw-admin", "quota", "set", *full, "--max-objects=0")
        call("radosgw-admin", "quota", "enable", *full)
        yield clients


@contextlib.contextmanager
def object_stores() -> Iterator[Callable[[str], Mapping[str, str]]]:
    """Yield a function that starts a server by name, once, and returns its clients' environment."""
    servers = {"moto": moto, "ceph": ceph}
    with contextlib.ExitStack() as stack:
        yield functools.cache(lambda name: stack.enter_context(servers[name]()))


def forget_clients() -> None:
    """Make s3fs read its environment again; it caches one client for equal arguments."""
    import s3fs

    s3fs.S3FileSystem.clear_instance_cache()


def _clients(port: int) -> Mapping[str, str]:
    """Create the buckets of a server; return the environment of its clients."""
    import botocore.session

    clients = {
        "AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}",
        "AWS_ACCESS_KEY_ID": KEY,
        "AWS_SECRET_ACCESS_KEY": SECRET,
        "AWS_DEFAULT_REGION": "us-east-1",
    }
    client = botocore.session.get_session().create_client(
        "s3", region_name=clients["AWS_DEFAULT_REGION"],
        endpoint_url=clients["AWS_ENDPOINT_URL"],
        aws_access_key_id=KEY, aws_secret_access_key=SECRET,
    )  # fmt: skip
    for bucket in ("studies", "full"):
        client.create_bucket(Bucket=bucket)
    return clients
