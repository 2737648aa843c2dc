"""Commands on a store in a bucket: messages when it fails, and use from another machine."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.conftest import CommandLine, CommandLines
from tests.object_stores import moto

STUDY = ("digits", "--set", "base.epochs=2", "--set", "seeds=1")
NOBODY = "http://127.0.0.1:9"

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300, func_only=True)]


def _said(mixsweep: CommandLine, *arguments: str, code: int) -> str:
    """Return the single line that a failing command prints."""
    said = mixsweep(*arguments, code=code).stderr.strip()
    assert len(said.splitlines()) == 1, said
    return said


@pytest.mark.parametrize(
    ("changes", "url", "text"),
    [
        ({}, "s3://no-such-bucket/store", "s3://no-such-bucket/store: no such bucket"),
        ({"AWS_ENDPOINT_URL": NOBODY}, "s3://studies/a", "127.0.0.1:9"),
        ({"AWS_ACCESS_KEY_ID": ""}, "s3://studies/a", "Unable to locate credentials"),
    ],
    ids=["missing", "unreachable", "no credentials"],
)
def test_a_failing_store_is_reported_in_one_line(
    command_line: CommandLines, s3: Mapping[str, str], tmp_path: Path,
    changes: Mapping[str, str], url: str, text: str,
) -> None:  # fmt: skip
    alone = {"HOME": str(tmp_path), "AWS_EC2_METADATA_DISABLED": "true", "AWS_MAX_ATTEMPTS": "1"}
    mixsweep = command_line(**alone | changes)
    assert text in _said(mixsweep, "store", "prune", "digits", "--yes", "--store", url, code=2)


def test_refused_credentials_are_reported_in_one_line(command_line: CommandLines) -> None:
    with moto(INITIAL_NO_AUTH_ACTION_COUNT="2") as clients:  # the buckets are made before
        mixsweep = command_line(**{**clients, "AWS_ACCESS_KEY_ID": "a-stranger"})
        said = _said(mixsweep, "store", "list", "digits", "--store", "s3://studies/a", code=2)
    expected = "s3://studies/a: the server refuses these credentials (InvalidAccessKeyId)"
    assert said == expected


def test_a_full_bucket_is_reported_in_one_line(
    command_line: CommandLines, s3: Mapping[str, str]
) -> None:
    said = _said(command_line(), "run", *STUDY, "--store", "s3://full/store", code=1)
    assert said.startswith("s3://full/store: full, or over its quota (QuotaExceeded); ")
    assert said.endswith("`mixsweep store prune STUDY` shows what can be freed")
