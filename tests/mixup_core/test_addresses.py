"""Addresses: secrets are never shown, however they are written; all else is shown."""

import pytest

from mixup_core.addresses import reason, store_address, web_address, without_secrets
from mixup_core.store.errors import StoreError
from mixup_core.store.files import open_files
from sweeps.machine.databases import database_address
from tests.hostile_addresses import CANARIES, addresses


def leaks(text: str) -> bool:
    return any(canary in text.lower() for canary in map(str.lower, CANARIES))


def test_no_secret_of_3000_addresses_is_shown() -> None:
    shown = (
        (url, text)
        for url in addresses(3000)
        for address in (store_address(url), web_address(url), database_address(url))
        for text in (
            str(address),
            repr(address),
            "" if " " in url else without_secrets(f"at {url}: no"),
        )
    )
    assert [found for found in shown if leaks(found[1])] == []


def test_the_error_of_a_library_is_shown_by_its_type_if_the_address_has_a_secret() -> None:
    error = ValueError("at sftp://me:secret@h:\n no")
    assert reason(error, store_address("sftp://me:secret@h")) == "ValueError"
    assert reason(error, store_address("sftp://h")) == "at sftp://me:secret@h: no"
    assert reason(OSError(), store_address("sftp://h")) == "OSError"


def test_only_a_scheme_of_a_chained_address_is_shown() -> None:
    assert str(store_address("filecache::s3://bucket")) == "s3://***"
    assert str(store_address("s3://bucket?token=a::secret")) == "***"


def test_a_store_that_cannot_be_opened_is_reported_without_secrets() -> None:
    for url in (url for url in addresses(500) if "://" in url):
        with pytest.raises(StoreError) as caught:
            open_files(url.replace("://", "x://", 1))
        assert not leaks(str(caught.value))


@pytest.mark.parametrize(
    "url",
    [
        "s3://bucket/a b/c", "s3://bucket", "gs://bucket/x", "memory://Store/x",
        "abfs://container@account.dfs.core.windows.net/x", "http://host:5000/x", "runs/store",
        "/home/me@site/a::b", "file:///a#b?c",
    ],
)  # fmt: skip
def test_a_store_address_without_secrets_is_shown_in_full(url: str) -> None:
    assert (str(store_address(url)), store_address(url).is_whole) == (url, True)


@pytest.mark.parametrize(
    ("url", "shown", "is_whole"),
    [
        ("http://[::1]:5000", "http://[::1]:5000", True),
        ("127.0.0.1:6379", "127.0.0.1:6379", True),
        ("token@host:6379", "***", False),
        ("http://host:secret/x", "http://***", False),
        ("http://me@host", "http://***@host", False),
    ],
)
def test_a_server_is_shown_by_scheme_host_port_and_path(
    url: str, shown: str, is_whole: bool
) -> None:
    address = web_address(url)
    assert (str(address), address.is_whole) == (shown, is_whole)


def test_text_without_secrets_is_not_changed() -> None:
    text = (
        "see https://arxiv.org/abs/1710.09412, (http://127.0.0.1:5000) and sqlite:////a@b/x.db; "
        "in file:///a#b, at:/home/x, a // b, runs//store and me@site."
    )
    assert without_secrets(text) == text
