"""`cluster/rayjob.yaml` as KubeRay would run it; pods are hosts, and Kubernetes is simulated.

The file determines node types, their number and resources (read by Ray's autoscaler for
Kubernetes), the parameters of `ray start`, the variables of the containers, and the entry point,
which `ray job submit` sends as the submitter pod does. Here pods have one CPU, the study needs no
GPU, and /runs is a folder of the test.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

# Ray has no public name for it.
from ray.autoscaler._private.kuberay.autoscaling_config import (
    _derive_autoscaling_config_from_ray_cr,
)

from tests.hosts.borders import meet_kubernetes
from tests.hosts.conftest import Record
from tests.hosts.growth import IDLE_SECONDS, trained_through_a_loss
from tests.hosts.host import hosts_in
from tests.hosts.operators import REPOSITORY, STUDY, Operator

pytestmark = [pytest.mark.long, pytest.mark.slow, pytest.mark.timeout(3600, func_only=True)]

BORDER = (
    "No Kubernetes with KubeRay is here, so `kubectl apply` ends at once: the test builds the "
    "cluster that the file declares from hosts made of namespaces, and sends the file's entry "
    "point as KubeRay's submitter does."
)
TOKEN = "5a" * 32


@pytest.fixture
def spec(tmp_path: Path) -> dict[str, Any]:
    """Return the content of the file, with /runs inside the folder of the test."""
    text = (REPOSITORY / "cluster" / "rayjob.yaml").read_text()
    read: dict[str, Any] = yaml.safe_load(text.replace("/runs", str(tmp_path / "runs")))
    return read


@pytest.fixture
def operator(spec: dict[str, Any], tmp_path: Path, hosts: Path) -> Iterator[Operator]:
    """Create the cluster that the file declares, and delete it at the end as KubeRay does."""
    operator = Operator.arrives(
        tmp_path, RAY_AUTH_MODE="token", RAY_AUTH_TOKEN=TOKEN, TMPDIR=str(tmp_path)
    )
    file = tmp_path / "cluster.yaml"
    file.write_text(yaml.safe_dump(_cluster(spec, hosts, f"sqlite:///{tmp_path}/mlflow.db")))
    meet_kubernetes(operator)
    operator.type(f"cd {REPOSITORY} && ray up --yes {file}")
    yield operator
    assert spec["spec"]["shutdownAfterJobFinishes"] is True
    operator.type(f"ray down --yes {file}")
    assert not hosts_in(hosts)


def _cluster(spec: dict[str, Any], hosts: Path, tracking: str) -> dict[str, Any]:
    """Return the cluster configuration that Ray's autoscaler makes of the file."""
    ray_cluster = spec["spec"]["rayClusterSpec"]
    metadata = {**spec["metadata"], "namespace": "default"}
    config = _derive_autoscaling_config_from_ray_cr({"metadata": metadata, "spec": ray_cluster})
    declared = config["available_node_types"]["gpu"]
    assert (declared["resources"]["GPU"], declared["resources"]["CPU"]) == (1, 8)
    assert (declared["min_workers"], declared["max_workers"]) == (0, 8)
    declared["resources"]["CPU"] = 1
    for kind in config["available_node_types"].values():
        kind["resources"].pop("memory", None)
    module = "tests.hosts.provider.HostProvider"
    (worker,) = ray_cluster["workerGroupSpecs"]
    return {
        **config,
        "provider": {"type": "external", "module": module, "folder": str(hosts)},
        "auth": {"ssh_user": "ray"},
        "idle_timeout_minutes": IDLE_SECONDS / 60,
        "head_start_ray_commands": [
            _start(ray_cluster["headGroupSpec"], tracking, "--head --port=6379 "
                   "--dashboard-host=127.0.0.1 --autoscaling-config=~/ray_bootstrap_config.yaml")
        ],
        "worker_start_ray_commands": [_start(worker, tracking, "--address=$RAY_HEAD_IP:6379")],
    }  # fmt: skip


def _start(group: dict[str, Any], tracking: str, options: str) -> str:
    """Return the start command of the pods of a group, with the variables of their container."""
    (container,) = group["template"]["spec"]["containers"]
    variables = {entry["name"]: entry.get("value", tracking) for entry in container["env"]}
    variables |= {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": TOKEN, "OMP_NUM_THREADS": "1"}
    exported = " ".join(f"{name}={value}" for name, value in variables.items())
    parameters = " ".join(f"--{name}={value}" for name, value in group["rayStartParams"].items())
    return (
        f"export PATH=$HOME/.venv/bin:$PATH {exported}; "
        f"ulimit -n 65536; ray start {parameters} {options}"
    )


def test_the_entry_point_trains_on_pods_that_join_and_continues_after_a_lost_pod(
    spec: dict[str, Any], operator: Operator, hosts: Path, tmp_path: Path, record: Record
) -> None:
    work = operator.folder / "work"
    study = f"{work / STUDY[0]} {STUDY[1]} {work / STUDY[2]} --device cpu"
    entry = spec["spec"]["entrypoint"].replace("table1-fmnist", study)
    assert study in entry
    variables = json.dumps(yaml.safe_load(spec["spec"]["runtimeEnvYAML"]))
    submit = (
        "ray job submit --address http://127.0.0.1:8265 "
        f"--runtime-env-json '{variables}' -- {entry}"
    )
    store = tmp_path / "runs" / "store"
    figures = trained_through_a_loss(operator, submit, hosts, store)
    record(
        "rayjob",
        "cluster/rayjob.yaml on hosts made of namespaces, by its entry point, 8 runs",
        {
            "what the file declares": "a head without a CPU or GPU, 0 to 8 pods with 1 GPU",
            **figures,
        },
        operator.first_use("rayjob.yaml", BORDER),
    )
