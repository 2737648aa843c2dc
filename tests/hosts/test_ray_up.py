"""`ray up` with the files for AWS and Google, with a simulated cloud.

Words in capitals in a file are filled in, and its provider is replaced by `HostProvider`. Nodes
have as many CPUs as this machine can serve.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import ray
import yaml

from tests.hosts.borders import meet_the_account
from tests.hosts.conftest import Record
from tests.hosts.growth import IDLE_SECONDS, trained_through_a_loss
from tests.hosts.host import OUTSIDE, hosts_in
from tests.hosts.operators import REPOSITORY, STUDY, Operator

pytestmark = [pytest.mark.long, pytest.mark.slow, pytest.mark.timeout(3600, func_only=True)]

BORDER = (
    "Ray's launcher and autoscaler are real, and hosts made of namespaces take the place of the "
    "cloud's machines. The first `ray up` has the cloud's own provider and ends where an account "
    "is needed. The second has the same file, with hosts as its provider. Images, spot "
    "prices and networks of the cloud were not tried."
)
SUBMIT = f"mixsweep submit {' '.join(STUDY)} --address http://127.0.0.1:8265"
ON_GPUS = "--gpus-per-run 1 --slots 8 --device cpu"
CLOUDS = {"aws": "s3://BUCKET/store", "gcp": "gs://BUCKET/store"}


@dataclass(frozen=True, kw_only=True, slots=True)
class Cluster:
    """A cluster file with its placeholders filled in, and the person who uses it."""

    file: Path
    hosts: Path
    store: Path
    operator: Operator

    @property
    def has_nodes(self) -> bool:
        """True from `ray up` to `ray down`."""
        return (self.hosts / "nodes.json").read_text() != "{}"

    def end(self) -> None:
        """End the cluster."""
        self.operator.type(f"ray down --yes {self.file}")
        assert not hosts_in(self.hosts)


@pytest.fixture(params=sorted(CLOUDS))
def cluster(request: pytest.FixtureRequest, tmp_path: Path, hosts: Path) -> Iterator[Cluster]:
    """Fill in a cluster file, and let `ray up` start its head node in this namespace."""
    cloud = request.param
    store, home = tmp_path / "store", tmp_path / "runs"
    text = (REPOSITORY / "cluster" / f"{cloud}.yaml").read_text()
    assert CLOUDS[cloud] in text
    text = text.replace(CLOUDS[cloud], str(store))
    text = text.replace("http://TRACKING-HOST:5000", f"sqlite:///{tmp_path}/mlflow.db")
    text = text.replace("$HOME/runs", str(home))
    token = tmp_path / "laptop" / ".config" / "mixsweep" / "ray_token"
    operator = Operator.arrives(
        tmp_path, RAY_AUTH_MODE="token", RAY_AUTH_TOKEN_PATH=str(token), MIXSWEEP_HOME=str(home),
        TMPDIR=str(tmp_path),
    )  # fmt: skip
    token.parent.mkdir(parents=True)
    token.write_text("5a" * 32)
    file = tmp_path / f"{cloud}.yaml"
    file.write_text(yaml.safe_dump(_on_hosts(yaml.safe_load(text), cloud, hosts)))
    meet_the_account(operator, cloud)
    operator.type(f"cd {REPOSITORY} && ray up --yes {file}")
    cluster = Cluster(file=file, hosts=hosts, store=store, operator=operator)
    yield cluster
    if cluster.has_nodes:
        cluster.end()


def _on_hosts(spec: dict[str, Any], cloud: str, folder: Path) -> dict[str, Any]:
    """Return a cluster file with Ray's defaults for its cloud, and hosts as the provider."""
    defaults = Path(ray.__file__).parent / "autoscaler" / cloud / "defaults.yaml"
    spec = {**yaml.safe_load(defaults.read_text()), **spec}
    module = "tests.hosts.provider.HostProvider"
    spec["provider"] = {"type": "external", "module": module, "folder": str(folder)}
    for kind in spec["available_node_types"].values():
        kind["resources"]["CPU"] = 1
    spec["idle_timeout_minutes"] = IDLE_SECONDS / 60
    return spec


def test_a_cluster_grows_from_zero_survives_a_lost_spot_node_and_shrinks_to_zero(
    cluster: Cluster, record: Record
) -> None:
    operator = cluster.operator
    _assert_set_up(cluster)

    refused = operator.type(SUBMIT, code=2)
    assert "add --gpus-per-run 1 to wait for them, or --gpus-per-run 0 to train on CPUs" in refused
    assert "Traceback" not in refused

    operator.type(
        f"{SUBMIT} --gpus-per-run 0 --set study=on-cpus --set base.epochs=2 --set seeds=1"
    )
    assert not hosts_in(cluster.hosts), "a node with a GPU was started for runs on CPUs"

    submit = f"{SUBMIT} {ON_GPUS}"
    figures = trained_through_a_loss(operator, submit, cluster.hosts, cluster.store)
    cluster.end()
    record(
        f"ray-up-{cluster.file.stem}",
        f"cluster/{cluster.file.name} by `ray up` on hosts made of namespaces, 8 runs",
        {
            "what `ray up` started": "a head without a GPU",
            "the study without --gpus-per-run": "refused with exit code 2",
            "GPU nodes for a study with --gpus-per-run 0": 0,
            **figures,
        },
        operator.first_use(cluster.file.name, BORDER),
    )


def _assert_set_up(cluster: Cluster) -> None:
    """Check that the packages for Ray's autoscaler are installed on the head node only."""
    cloud = cluster.file.stem
    (head,) = cluster.hosts.glob("*/home")
    log = (head.parent / "commands.log").read_text()
    installs = [line for line in log.splitlines() if line.startswith("$ ") and "pip " in line]
    assert installs
    assert all(line.startswith("$ ~/.venv/bin/pip ") for line in installs)
    library = {"aws": "boto3", "gcp": "google-api-python-client"}[cloud]
    assert library in (head / ".venv" / "pip.log").read_text()
    assert (head / ".config" / "mixsweep" / "ray_token").stat().st_mode & 0o77 == 0
    assert f"--address='{OUTSIDE}:6379'" in log
    status = cluster.operator.type(f"ray status --address {OUTSIDE}:6379")
    assert " 1 head\n" in status
