"""Concealed: log records and messages of any library contain no secret of a known address."""

import logging
from collections.abc import Iterator

import pytest

from sweeps.machine import concealed as module
from sweeps.machine.concealed import conceal, concealed
from sweeps.machine.databases import database_address

URL = "postgresql://bob:a@swordfish@host/db"


@pytest.fixture(autouse=True)
def nothing_known() -> Iterator[None]:
    factory = logging.getLogRecordFactory()
    yield
    logging.setLogRecordFactory(factory)
    module._known.clear()


def test_secrets_are_removed_from_log_records_of_any_library(
    caplog: pytest.LogCaptureFixture,
) -> None:
    conceal(URL, database_address(URL))
    logging.getLogger("some.library").warning("cannot resolve %r of %s", "swordfish@host", URL)
    try:
        raise ConnectionError(f"no route to swordfish@host ({URL})")
    except ConnectionError:
        logging.getLogger("some.library").exception("at 100%")
    assert "swordfish" not in caplog.text
    assert "cannot resolve '***@***' of postgresql://***" in caplog.text
    assert "ConnectionError: no route to" in caplog.text


def test_a_log_record_that_cannot_be_formatted_is_left_to_logging() -> None:
    conceal(URL, database_address(URL))
    record = logging.getLogRecordFactory()("n", logging.INFO, "p", 1, "%d", ("x",), None)
    assert record.args == ("x",)


def test_addresses_without_a_secret_leave_logging_unchanged() -> None:
    before = logging.getLogRecordFactory()
    conceal("postgresql://host/db", database_address("postgresql://host/db"))
    assert logging.getLogRecordFactory() is before
    assert concealed("at postgresql://host/db: no host") == "at postgresql://host/db: no host"


def test_secrets_of_known_and_other_addresses_are_removed_from_a_message() -> None:
    conceal(URL, database_address(URL))
    assert concealed("host swordfish, http://me:pw@h/x") == "*** ***, http://***@h/x"
