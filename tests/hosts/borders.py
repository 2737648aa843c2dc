"""Borders: cluster files with the providers of their clouds, up to where an account is needed."""

import shutil

from tests.hosts.operators import REPOSITORY, Operator

FILLED_IN = {
    "aws": {
        "REGION": "eu-central-1", "IMAGE": "ami-0123456789abcdef0",
        "PRIVATE-SUBNET": "subnet-0123456789abcdef0", "MIXSWEEP-HEAD-PROFILE": "mixsweep-head",
        "MIXSWEEP-WORKER-PROFILE": "mixsweep-worker", "BUCKET": "studies-of-a-team",
        "TRACKING-HOST": "tracker.internal",
    },
    "gcp": {
        "REGION": "europe-west4", "ZONE": "europe-west4-a", "PROJECT": "studies-of-a-team",
        "IMAGE": "projects/studies-of-a-team/global/images/mixsweep",
        "HEAD-SERVICE-ACCOUNT": "head@studies-of-a-team.iam.gserviceaccount.com",
        "WORKER-SERVICE-ACCOUNT": "worker@studies-of-a-team.iam.gserviceaccount.com",
        "PRIVATE-SUBNETWORK": "regions/europe-west4/subnetworks/private",
        "BUCKET": "studies-of-a-team", "TRACKING-HOST": "tracker.internal",
    },
}  # fmt: skip
"""Values of the words in capitals, as a person would write them, by cloud."""
_ENDS = {
    "aws": ("Unable to locate credentials",),
    "gcp": (
        "Your default credentials were not found",
        "You can install it with `pip install google-api-python-client`",
    ),
}
"""Last words of `ray up` without an account; Google's library may be missing besides."""


def meet_the_account(operator: Operator, cloud: str) -> None:
    """Let the operator type `ray up` with the provider of the cloud; without an account it ends."""
    words = FILLED_IN[cloud]
    edits = "; ".join(f"s|{word}|{words[word]}|" for word in sorted(words, key=len, reverse=True))
    operator.type(f"sed '/^#/!{{{edits}}}' {REPOSITORY}/cluster/{cloud}.yaml > {cloud}.yaml")
    work = operator.folder / "work"
    said = operator.type(f"cd {REPOSITORY} && ray up --yes {work / cloud}.yaml", code=1)
    assert any(end in said for end in _ENDS[cloud]), said


def meet_kubernetes(operator: Operator) -> None:
    """Let the operator type `kubectl apply`; without a Kubernetes cluster it ends."""
    if shutil.which("kubectl"):
        said = operator.type(f"kubectl apply -f {REPOSITORY}/cluster/rayjob.yaml", code=1)
        assert "connection refused" in said, said
