"""`cluster/aws.yaml` with Ray's own provider for AWS, and moto in the place of EC2 and IAM."""

import os
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3
import pytest
import yaml
from ray.autoscaler import sdk
from ray.autoscaler._private.aws.node_provider import AWSNodeProvider  # Ray has no public name
from ray.autoscaler.tags import NODE_KIND_WORKER, TAG_RAY_NODE_KIND, TAG_RAY_USER_NODE_TYPE

from tests.faults.launches import wait_for
from tests.hosts.borders import fill_in
from tests.hosts.conftest import Record
from tests.hosts.host import detach
from tests.hosts.operators import REPOSITORY, Operator

pytestmark = [pytest.mark.long, pytest.mark.slow, pytest.mark.timeout(900, func_only=True)]

REGION = "eu-central-1"
EC2 = "http://127.0.0.1:5555"
BORDER = (
    "Ray's provider for AWS is real; moto takes the place of EC2 and IAM, and its machines cannot "
    "be reached: `timeout` ends `ray up` while it waits for SSH. An account is needed from there."
)


@pytest.fixture
def operator(tmp_path: Path, hosts: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Operator]:
    """Start EC2, with a subnet and the two instance profiles that the file asks for."""
    del hosts  # it gives the test a namespace
    variables = {
        "AWS_ENDPOINT_URL": EC2, "AWS_ACCESS_KEY_ID": "a-key", "AWS_SECRET_ACCESS_KEY": "a-secret",
        "AWS_DEFAULT_REGION": REGION, "TMPDIR": str(tmp_path),
    }  # fmt: skip
    moto = detach(
        str(Path(sys.prefix, "bin", "moto_server")), "--port", EC2.rpartition(":")[2],
        log=tmp_path / "moto.log",
    )  # fmt: skip
    operator = Operator.arrives(tmp_path, **variables)
    token = tmp_path / "laptop" / ".config" / "mixsweep" / "ray_token"
    token.parent.mkdir(parents=True)
    token.write_text("5a" * 32)
    for name, value in {**variables, "HOME": str(tmp_path / "laptop")}.items():
        monkeypatch.setenv(name, value)
    answer = f"curl --silent --output /dev/null --write-out '%{{http_code}}' {EC2}/moto-api/"
    wait_for(lambda: operator.answers(answer) == "200")
    yield operator
    os.kill(moto, signal.SIGTERM)


def test_ray_up_starts_the_head_on_ec2_and_ray_down_ends_every_machine(
    operator: Operator, record: Record
) -> None:
    began, ec2, iam = time.monotonic(), boto3.client("ec2"), boto3.client("iam")
    vpc = ec2.describe_vpcs()["Vpcs"][0]["VpcId"]
    subnet = ec2.create_subnet(VpcId=vpc, CidrBlock="172.31.200.0/24")["Subnet"]["SubnetId"]
    image = ec2.describe_images()["Images"][0]["ImageId"]
    for name in ("mixsweep-head", "mixsweep-worker"):
        iam.create_instance_profile(InstanceProfileName=name)
    fill_in(operator, "aws", **{"PRIVATE-SUBNET": subnet, "IMAGE": image})
    file = operator.folder / "work" / "aws.yaml"

    said = operator.type(f"cd {REPOSITORY} && timeout 30 ray up --yes {file}", code=124)
    assert "Waiting for SSH to become available" in said
    (head,) = _running(ec2)
    assert head["InstanceType"] == "m6i.xlarge"
    assert head["IamInstanceProfile"]["Arn"].endswith("/mixsweep-head")
    assert head["SubnetId"] == subnet
    assert head.get("PublicIpAddress") is None
    head_disk = _disk(ec2, head)
    assert (head_disk["Size"], head_disk["Encrypted"]) == (100, True)

    _start_a_worker(file)
    (worker,) = (found for found in _running(ec2) if found["InstanceId"] != head["InstanceId"])
    assert worker["InstanceType"] == "g5.4xlarge"
    assert worker["InstanceLifecycle"] == "spot"
    assert worker["IamInstanceProfile"]["Arn"].endswith("/mixsweep-worker")
    assert worker.get("PublicIpAddress") is None

    operator.type(f"cd {REPOSITORY} && ray down --yes {file}")
    assert not _running(ec2)
    record(
        "aws-ec2",
        "cluster/aws.yaml by `ray up` with Ray's provider for AWS, and moto as EC2",
        {
            "head": f"{head['InstanceType']}, {head_disk['Size']} GB encrypted, no public address",
            "worker, started as the autoscaler does": f"{worker['InstanceType']}, spot, "
            "no public address",
            "border": "SSH to the head: needs an account",
            "machines after `ray down`": 0,
            "seconds in all": round(time.monotonic() - began, 1),
        },
        operator.first_use("aws.yaml", BORDER),
    )


def _running(ec2: Any) -> list[dict[str, Any]]:
    """Return the instances that are paid for."""
    found = [
        instance
        for reservation in ec2.describe_instances()["Reservations"]
        for instance in reservation["Instances"]
    ]
    return [instance for instance in found if instance["State"]["Name"] in {"pending", "running"}]


def _disk(ec2: Any, instance: dict[str, Any]) -> dict[str, Any]:
    """Return the description of an instance's first disk."""
    volume = instance["BlockDeviceMappings"][0]["Ebs"]["VolumeId"]
    disk: dict[str, Any] = ec2.describe_volumes(VolumeIds=[volume])["Volumes"][0]
    return disk


def _start_a_worker(file: Path) -> None:
    """Start one GPU node with the calls of Ray's autoscaler."""
    config = sdk.bootstrap_config(yaml.safe_load(file.read_text()), no_config_cache=True)
    provider = AWSNodeProvider(config["provider"], config["cluster_name"])
    tags = {TAG_RAY_NODE_KIND: NODE_KIND_WORKER, TAG_RAY_USER_NODE_TYPE: "gpu"}
    provider.create_node(config["available_node_types"]["gpu"]["node_config"], tags, 1)
