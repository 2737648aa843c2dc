"""Commands on a store in a bucket: messages when it fails, and use from another machine."""

from collections.abc import Callable, Mapping
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


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"AWS_ACCESS_KEY_ID": "a-stranger"}, "InvalidAccessKeyId"),
        pytest.param(
            {"AWS_SECRET_ACCESS_KEY": "a-guess"}, "SignatureDoesNotMatch", marks=pytest.mark.long
        ),
    ],
    ids=["unknown", "wrong"],
)
def test_refused_credentials_are_reported_in_one_line(
    command_line: CommandLines,
    object_store: Callable[[str], Mapping[str, str]],
    changes: Mapping[str, str],
    reason: str,
) -> None:
    def said(clients: Mapping[str, str]) -> str:
        mixsweep = command_line(**{**clients, **changes})
        return _said(mixsweep, "store", "list", "digits", "--store", "s3://studies/a", code=2)

    expected = f"s3://studies/a: the server refuses these credentials ({reason})"
    if reason == "SignatureDoesNotMatch":
        assert said(object_store("ceph")) == expected
        return
    with moto(INITIAL_NO_AUTH_ACTION_COUNT="2") as clients:  # the buckets are made before
        assert said(clients) == expected


def test_a_full_bucket_is_reported_in_one_line(
    command_line: CommandLines, s3: Mapping[str, str]
) -> None:
    said = _said(command_line(), "run", *STUDY, "--store", "s3://full/store", code=1)
    assert said.startswith("s3://full/store: full, or over its quota (QuotaExceeded); ")
    assert said.endswith("`mixsweep store prune STUDY` shows what can be freed")
