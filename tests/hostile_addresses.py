"""Addresses that contain secrets, written as SQLAlchemy, fsspec, urllib and people write them."""

import random
import string
from collections.abc import Iterator, Mapping, Sequence
from urllib.parse import quote

CANARIES = ("cAnArYoNe", "cAnArYtWo")
"""Two halves of each secret; any character may stand between them."""
FORMS = (
    "{database}://bob:{quoted}@{host}/{path}", "{database}://{quoted}:{quoted}@{host}/{path}",
    "{database}://{host}/{path}?{key}={quoted}",
    "{database}://bob:{secret}@{host}/db", "{database}://{secret}@{host}/db",
    "{database}://bob:{secret}@{host}", "{database}://{host}/db?{key}={secret}",
    "{database}://bob:{secret}@/db", "{database}:///db?{key}={secret}",
    "{store}://bob:{secret}@bucket", "{store}://{secret}@bucket/{path}",
    "{store}://bucket/{path}?{key}={secret}", "zip://inner::{store}://bob:{secret}@bucket/{path}",
    "{web}://{secret}@{host}/{path}", "{web}://bob:{secret}@{host}",
    "{web}://{host}/{path}?{key}={quoted}", "{web}://bob:{secret}@{host}/{path}?{key}={quoted}",
    "{web}://a:b@{secret}@{host}", "{web}://{host}/{path}?{key}={secret}",
    "{web}://{host}/{path}#{key}={secret}",
)  # fmt: skip
PARTS: Mapping[str, Sequence[str]] = {
    "database": ("postgresql", "postgresql+psycopg", "mysql+pymysql", "mssql+pyodbc", "oracle",
                 "sqlite", "sqlite+pysqlcipher", "foo"),
    "store": ("s3", "gs", "abfs", "az", "sftp", "ssh", "ftp", "smb", "hdfs", "webhdfs", "http",
              "https", "github", "memory", "simplecache::s3", "filecache::https"),
    "web": ("http", "https"),
    "host": ("host", "host:5432", "db.example.org", "10.0.0.1", "[::1]:5000"),
    "path": ("", "a/b c", "x.zip"),
    "key": ("password", "passwd", "pwd", "token", "sig", "api_key", "sslpassword", "user", "key",
            "X-Amz-Signature", "X-Amz-Security-Token", "X-Amz-Credential"),
}  # fmt: skip
BEFORE = ("file:///x", "sqlite:///x.db", "sqlite:////x.db")
"""Addresses without a secret, behind which another one is written by mistake."""


def addresses(count: int) -> Iterator[str]:
    """Yield `count` addresses, each with at least one secret; a third has a mistake."""
    draw = random.Random(0)
    for number in range(count):
        secret = string.punctuation[number % len(string.punctuation)].join(CANARIES)
        parts = {name: draw.choice(values) for name, values in PARTS.items()}
        url = draw.choice(FORMS).format(secret=secret, quoted=quote(secret, safe=""), **parts)
        match draw.randrange(6):
            case 0:
                yield url.replace("://", draw.choice(["//", ":/"]), 1)
            case 1:
                yield f"{draw.choice(BEFORE)}{draw.choice(',; |')}{url}"
            case _:
                yield url
