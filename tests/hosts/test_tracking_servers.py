"""`cluster/mlflow.service` and `cluster/compose.yaml`: their commands run on hosts.

The unit's ExecStart and Environment, and the command, environment and health check of each Compose
service, run as written on hosts. Docker images are replaced by programs installed here: MLflow,
PostgreSQL, and moto for the S3 server.
"""

import configparser
import os
import re
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import requests
import yaml

from tests.faults.launches import wait_for
from tests.hosts.conftest import Record
from tests.hosts.host import Host, call, detach, plain_environment
from tests.hosts.operators import REPOSITORY, Operator

pytestmark = [pytest.mark.long, pytest.mark.slow, pytest.mark.timeout(1800, func_only=True)]

NO_SYSTEMD = (
    "No systemd runs here: in the place of `systemctl enable --now mlflow` the test starts the "
    "command of the unit with the unit's variables. Sandboxing by systemd was not tried."
)
NO_DOCKER = (
    "No Docker runs here: in the place of `docker compose up -d` the test starts each service by "
    "its command, variables and health check on a host made of namespaces, and moto is the S3 "
    "server. The images were not tried."
)
TINY = "digits --set base.epochs=2 --set seeds=1 --engine inline"
NOBODY = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--")


def _status(url: str, **headers: str) -> int:
    """Return the HTTP status of a page; 0 without an answer."""
    try:
        return requests.get(url, headers=headers, timeout=5).status_code
    except requests.ConnectionError:
        return 0


def _num_runs(operator: Operator, tracking: str) -> int:
    """Return the number of finished runs on a tracking server."""
    code = (
        "import mlflow; c = mlflow.MlflowClient(); e = [x.experiment_id for x in "
        "c.search_experiments()]; print(sum(r.info.status == 'FINISHED' for r in c.search_runs(e)))"
    )
    said = operator.type(f"MLFLOW_TRACKING_URI={tracking} python -W ignore -c {shlex.quote(code)}")
    return int(said.split()[-1])


def test_the_mlflow_service_starts_stores_runs_and_refuses_foreign_host_names(
    tmp_path: Path, hosts: Path, record: Record
) -> None:
    unit = configparser.RawConfigParser(strict=False)
    unit.optionxform = str  # type: ignore[assignment, method-assign]
    unit.read_string((REPOSITORY / "cluster" / "mlflow.service").read_text().replace("\\\n", " "))
    service = unit["Service"]
    machine = Host.start(hosts / "tracker", 31)
    state = tmp_path / "mlflow"
    state.mkdir()
    variables = {
        "ARTIFACTS": str(state / "artifacts"),
        "HOSTS": "127.0.0.1:5000,localhost:5000",
        "MLFLOW_BACKEND_STORE_URI": f"sqlite:///{state}/mlflow.db",
        **dict(entry.split("=", 1) for entry in service["Environment"].split()),
    }
    # As systemd does: words first, then variables, each one word.
    words = [
        re.sub(r"\$\{(\w+)\}", lambda name: variables[name[1]], word)
        for word in shlex.split(service["ExecStart"])
    ]
    assert words[0] == "/opt/mixsweep/.venv/bin/mlflow"
    words[0] = str(Path(sys.prefix, "bin", "mlflow"))
    umask = f'umask {service["UMask"]}; cd {state}; exec "$@"'
    log = tmp_path / "mlflow.log"
    began = time.monotonic()
    environment = plain_environment(HOME=str(machine.home), **variables)
    detach(*machine.enter("bash", "-c", umask, "bash", *words), log=log, environment=environment)
    operator = Operator.arrives(tmp_path, machine)
    curl = "curl --silent --output /dev/null --write-out '%{http_code}' http://127.0.0.1:5000"
    wait_for(lambda: operator.answers(f"{curl}/health") == "200")
    up = time.monotonic() - began
    operator.type(f"{curl}/health")
    study = f"mixsweep run {TINY} --tracking-uri http://127.0.0.1:5000"
    operator.type(study)
    num_runs = _num_runs(operator, "http://127.0.0.1:5000")
    assert num_runs >= 3
    assert "nothing to train" in operator.type(study)
    assert _num_runs(operator, "http://127.0.0.1:5000") == num_runs
    foreign = operator.answers(f"{curl}/api/2.0/mlflow/experiments/search -H 'Host: evil.example'")
    assert foreign == "403"
    assert _status(f"http://{machine.ip}:5000/health") == 0, "it is on the loopback alone"
    assert (state / "mlflow.db").stat().st_mode & 0o077 == 0
    assert variables["MLFLOW_BACKEND_STORE_URI"] not in " ".join(words)
    machine.kill()
    record(
        "mlflow-service",
        "cluster/mlflow.service by its ExecStart, with a study of 3 runs",
        {
            "seconds until it answered": round(up, 1),
            "runs it has": num_runs,
            "the same command again": f"nothing to train; {num_runs} runs",
            "a foreign host name": "refused with 403",
        },
        operator.first_use("mlflow.service", NO_SYSTEMD),
    )


def test_the_compose_services_start_are_healthy_and_serve_a_study(
    tmp_path: Path, hosts: Path, record: Record
) -> None:
    binaries = sorted(Path("/usr/lib/postgresql").glob("*/bin"))
    missing = [] if binaries else ["PostgreSQL"]
    missing += [name for name in ("setpriv", "curl") if shutil.which(name) is None]
    if missing:
        pytest.skip(f"not installed: {', '.join(missing)}; NO SERVICE WAS STARTED")
    started = {name: Host.start(hosts / name, 41 + n) for n, name in enumerate(_SERVICES)}
    names = tmp_path / "hosts.txt"
    addresses = "".join(f"{host.ip} {name}\n" for name, host in started.items())
    names.write_text(f"127.0.0.1 localhost\n{addresses}")
    for host in started.values():
        call(*host.enter("mount", "--bind", str(names), "/etc/hosts"))
    mlflow, s3 = started["mlflow"].ip, started["s3"].ip
    secrets = {
        "POSTGRES_PASSWORD": "a-password", "S3_KEY": "a-key", "S3_SECRET": "a-secret",
        "S3_IMAGE": "moto", "BIND": mlflow, "MLFLOW_HOSTS": f"{mlflow}:5000,localhost:5000",
    }  # fmt: skip
    services = _compose(secrets)
    began = time.monotonic()

    _start_postgres(started["postgres"], services["postgres"], binaries[-1])
    check = services["postgres"]["healthcheck"]["test"]
    assert check[0] == "CMD"
    probe = [str(binaries[-1] / check[1]), *check[2:]]
    healthy = started["postgres"].enter(*probe)
    wait_for(lambda: subprocess.run(healthy, check=False).returncode == 0)
    moto = Path(sys.prefix, "bin", "moto_server")
    _start(started["s3"], services["s3"], f"{moto} --host 0.0.0.0 --port 8333")
    wait_for(lambda: _status(f"http://{s3}:8333/") == 200)

    assert services["mlflow"]["depends_on"] == {"postgres": {"condition": "service_healthy"}}
    keys = {
        "AWS_ACCESS_KEY_ID": secrets["S3_KEY"], "AWS_SECRET_ACCESS_KEY": secrets["S3_SECRET"],
        "AWS_ENDPOINT_URL": f"http://{s3}:8333", "AWS_DEFAULT_REGION": "us-east-1",
    }  # fmt: skip
    operator = Operator.arrives(tmp_path, **keys)
    buckets = (
        "import boto3; c = boto3.client('s3'); "
        "[c.create_bucket(Bucket=name) for name in ('mlflow', 'studies')]"
    )
    operator.type(f"python -c {shlex.quote(buckets)}")
    command = services["mlflow"]["command"]
    assert command.startswith("mlflow server ")
    _start(started["mlflow"], services["mlflow"], f"{Path(sys.prefix, 'bin')}/{command}")
    tracking = f"http://{mlflow}:5000"
    wait_for(lambda: _status(f"{tracking}/health") == 200)
    up = time.monotonic() - began

    study = f"mixsweep run {TINY} --tracking-uri {tracking} --store s3://studies/team"
    operator.type(study)
    num_runs = _num_runs(operator, tracking)
    assert num_runs >= 3
    assert "nothing to train" in operator.type(study)
    assert _status(f"{tracking}/api/2.0/mlflow/experiments/search", Host="evil.example") == 403
    listed = subprocess.run(
        ["ps", "-eo", "args"], check=True, capture_output=True, text=True
    ).stdout
    assert secrets["POSTGRES_PASSWORD"] not in listed
    for host in started.values():
        host.kill()
    record(
        "compose",
        "cluster/compose.yaml by its commands, variables and health check, a study of 3 runs",
        {
            "services": ", ".join(_SERVICES),
            "seconds until all answered": round(up, 1),
            "runs in MLflow on PostgreSQL": num_runs,
            "the same command again, from the S3 store": "nothing to train",
            "a foreign host name": "refused with 403",
        },
        operator.first_use("compose.yaml", NO_DOCKER),
    )


_SERVICES = ("mlflow", "postgres", "s3")
_SOCKETS = "/run/postgresql"
"""Folder in which PostgreSQL clients of Debian and of the Docker image look for a server."""


def _compose(secrets: Mapping[str, str]) -> dict[str, Any]:
    """Return the services of the file, with variables filled in as Compose does."""

    def value(found: re.Match[str]) -> str:
        return secrets.get(found[1], found[2])

    text = (REPOSITORY / "cluster" / "compose.yaml").read_text()
    filled = re.sub(r"\$\{(\w+)(?::[-?]([^}]*))?\}", value, text)
    services: dict[str, Any] = yaml.safe_load(filled)["services"]
    assert services.keys() == set(_SERVICES)
    return services


def _start(host: Host, service: Mapping[str, Any], command: str) -> None:
    environment = plain_environment(HOME=str(host.home), **service["environment"])
    line = host.enter("bash", "-c", f"cd {host.home}; exec {command}")
    detach(*line, log=host.folder / "service.log", environment=environment)


def _start_postgres(host: Host, service: Mapping[str, Any], binaries: Path) -> None:
    """Create user, password and database from the variables, as the PostgreSQL image does."""
    settings = service["environment"]
    data, secret = host.folder / "data", host.folder / "password"
    data.mkdir(mode=0o700)
    secret.write_text(settings["POSTGRES_PASSWORD"])
    for path in (data, secret):
        os.chown(path, 65534, 65534)
    for parent in (host.folder, *host.folder.parents):
        if parent.stat().st_mode & 0o011 != 0o011:
            parent.chmod(parent.stat().st_mode | 0o011)
    call(
        *NOBODY, str(binaries / "initdb"), "-D", str(data), "--auth=scram-sha-256", "--no-sync",
        f"--username={settings['POSTGRES_USER']}", f"--pwfile={secret}",
    )  # fmt: skip
    with (data / "pg_hba.conf").open("a") as rules:
        rules.write("host all all all scram-sha-256\n")
    server = [str(binaries / "postgres"), "-D", str(data), "-h", "*", "-k", _SOCKETS]
    own = f"mkdir -p {_SOCKETS} && mount -t tmpfs -o mode=1777 tmpfs {_SOCKETS}"
    call(*host.enter("sh", "-c", own))
    log = host.folder / "service.log"
    detach(*host.enter(*NOBODY, *server), log=log, environment=plain_environment())
    ready = host.enter(str(binaries / "pg_isready"), "-U", settings["POSTGRES_USER"])
    wait_for(lambda: subprocess.run(ready, check=False).returncode == 0)
    client = [str(binaries / "createdb"), "-h", "localhost", "-U", settings["POSTGRES_USER"]]
    subprocess.run(
        host.enter(*client, settings["POSTGRES_DB"]), check=True,
        env=plain_environment(PGPASSWORD=settings["POSTGRES_PASSWORD"]),
    )  # fmt: skip
