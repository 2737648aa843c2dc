"""Addresses that contain secrets, written as SQLAlchemy, fsspec, urllib and people write them."""

import random
import string
from collections.abc import Iterator
from urllib.parse import urlencode, urlunsplit

from sqlalchemy.engine import URL

CANARIES = ("cAnArYoNe", "cAnArYtWo")
"""Two halves of each secret; any character may stand between them."""
RESERVED = string.punctuation
KEYS = ("password", "passwd", "pwd", "token", "sig", "api_key", "sslpassword", "user", "key",
        "X-Amz-Signature", "X-Amz-Security-Token", "X-Amz-Credential")  # fmt: skip
DRIVERS = ("postgresql", "postgresql+psycopg", "mysql+pymysql", "mssql+pyodbc", "oracle", "sqlite",
           "sqlite+pysqlcipher", "foo")  # fmt: skip
PROTOCOLS = ("s3", "gs", "abfs", "az", "sftp", "ssh", "ftp", "smb", "hdfs", "webhdfs", "http",
             "https", "github", "memory", "simplecache::s3", "filecache::https")  # fmt: skip


def addresses(count: int) -> Iterator[str]:
    """Yield `count` addresses, each with at least one secret."""
    draw = random.Random(0)
    kinds = (_database, _typed_database, _store, _web, _typed_web, _mistyped, _listed)
    for number in range(count):
        between = RESERVED[number % len(RESERVED)]
        yield draw.choice(kinds)(draw, between.join(CANARIES))


def _database(draw: random.Random, secret: str) -> str:
    is_login, key = draw.random() < 0.6, draw.choice(KEYS)
    return URL.create(
        draw.choice(DRIVERS),
        username=draw.choice([secret, "bob"]) if is_login else None,
        password=secret if is_login else None,
        host=draw.choice(["host", "db.example.org", "10.0.0.1", "::1"]),
        port=draw.choice([None, 5432]),
        database=draw.choice(["db", "a/b"]),
        query={} if is_login else {key: secret},
    ).render_as_string(hide_password=False)


def _typed_database(draw: random.Random, secret: str) -> str:
    driver, host = draw.choice(DRIVERS), draw.choice(["host", "host:5432", "[::1]:5432", ""])
    return draw.choice(
        [
            f"{driver}://bob:{secret}@{host}/db",
            f"{driver}://{secret}@{host}/db",
            f"{driver}://bob:{secret}@{host}",
            f"{driver}://{host}/db?{draw.choice(KEYS)}={secret}",
        ]
    )


def _store(draw: random.Random, secret: str) -> str:
    protocol, path = draw.choice(PROTOCOLS), draw.choice(["", "/", "/a/b c", "/x.zip"])
    return draw.choice(
        [
            f"{protocol}://bob:{secret}@bucket{path}",
            f"{protocol}://{secret}@bucket{path}",
            f"{protocol}://bucket{path}?{draw.choice(KEYS)}={secret}",
            f"zip://inner::{protocol}://bob:{secret}@bucket{path}",
        ]
    )


def _web(draw: random.Random, secret: str) -> str:
    login = draw.choice(["", f"{secret}@", f"bob:{secret}@"])
    query = urlencode({draw.choice(KEYS): secret}) if not login or draw.random() < 0.3 else ""
    host = draw.choice(["host", "127.0.0.1:5000", "[::1]:5000"])
    return urlunsplit(
        (draw.choice(["http", "https"]), f"{login}{host}", draw.choice(["", "/x/y"]), query, "")
    )


def _typed_web(draw: random.Random, secret: str) -> str:
    return draw.choice(
        [
            f"https://{secret}@host:5000",
            f"https://bob:{secret}@host/x",
            f"http://a:b@{secret}@host",
            f"http://host/x?{draw.choice(KEYS)}={secret}",
            f"http://host/x#{draw.choice(KEYS)}={secret}",
        ]
    )


def _mistyped(draw: random.Random, secret: str) -> str:
    url = draw.choice([_typed_database, _store, _web, _typed_web])(draw, secret)
    return url.replace("://", draw.choice(["//", ":/"]), 1)


def _listed(draw: random.Random, secret: str) -> str:
    first = draw.choice(["file:///x", "sqlite:///x.db", "sqlite:////x.db"])
    url = draw.choice([_typed_database, _store, _web, _typed_web])(draw, secret)
    return f"{first}{draw.choice(',; |')}{url}"
