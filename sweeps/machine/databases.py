"""Database URLs: convert file paths to database URLs and back, and remove secrets."""

from dataclasses import replace
from pathlib import Path
from urllib.parse import quote, unquote, urlsplit
from urllib.request import url2pathname

from mixup_core.addresses import Address, web_address

_SQLITE = "sqlite:///"
_SQLITE_QUOTED = "sqlite+pysqlite:///"
"""URL prefix that SQLAlchemy treats like `sqlite:///`. With the usual prefix, MLflow creates the
database's folder from the URL-quoted path, which is another path."""


def sqlite_url(file: Path) -> str:
    """Return the URL with which SQLAlchemy opens a SQLite file."""
    plain = f"{_SQLITE}{file}"
    try:
        path = quote(str(file), safe=" +/")
    except UnicodeEncodeError as error:
        raise ValueError(
            f"{str(file)!r}: this path is not UTF-8, which SQLite needs; rename its folder or file"
        ) from error
    if path == str(file):
        return plain
    for url in (f"{_SQLITE_QUOTED}{path}", plain):  # before 2.1 SQLAlchemy does not unquote
        if _database(url) == str(file):
            return url
    raise ValueError(
        f"{file}: this path cannot be written as a database URL; rename its folder or file"
    )


def database_file(url: str) -> Path | None:
    """Return the path of the SQLite file that a database URL names; None for other databases."""
    scheme, mark, rest = url.partition("://")
    if not mark or scheme.partition("+")[0] != "sqlite":
        return None
    if scheme == "sqlite" and rest.startswith("/") and not {"%", "?"} & set(rest):
        path: str | None = rest[1:]
    else:
        path = _database(url)
    if not path or path == ":memory:":
        return None
    return Path(url2pathname(urlsplit(path).path) if path.startswith("file:") else path)


def database_address(url: str) -> Address:
    """Return the address of a database server or file without secrets, for messages."""
    scheme, mark, _ = url.partition("://")
    if not mark:
        return Address.of_path(url.removeprefix("file:"))
    if scheme in {"http", "https"}:
        return web_address(url)
    if scheme == "file":
        return Address.of_path(urlsplit(url).path, scheme)
    try:
        from sqlalchemy.engine import make_url
        from sqlalchemy.exc import ArgumentError
    except ImportError:
        return Address.of_parts(scheme=scheme, path="@")
    try:
        parts = make_url(url)
    except (ArgumentError, ValueError):
        return Address.of_parts(scheme=scheme, path="@")
    if "?" in url.partition("@")[0] and "@" in url:  # in a password, or before a query
        return Address.of_parts(scheme=scheme, path="@")
    path = "" if parts.database is None else f"/{parts.database}"
    has_login = parts.username is not None or parts.password is not None
    if scheme.partition("+")[0] == "sqlite" and not has_login and not parts.host:
        address = Address.of_path(parts.database or "", scheme)
        return address if address.is_hidden else replace(address, path=path, has_query="?" in url)
    return Address.of_parts(
        scheme=scheme,
        host=parts.host or "",
        port=parts.port,
        path=path,
        has_login=has_login,
        query="?" if "?" in url else "",
    )


def _database(url: str) -> str | None:
    """Return the database part of a URL as SQLAlchemy parses it; None if there is none."""
    try:
        from sqlalchemy.engine import make_url
        from sqlalchemy.exc import ArgumentError
    except ImportError:  # not installed on machines that only train
        return unquote(url.partition("?")[0].partition(":///")[2])
    try:
        return make_url(url).database
    except (ArgumentError, ValueError):
        return None
