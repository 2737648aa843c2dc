"""Addresses: URLs and paths without passwords and other secrets, to be shown and recorded."""

import re
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import urlsplit

HIDDEN = "***"
"""Text shown in place of a hidden part of an address."""

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+._-]{0,30}")
_HOST = re.compile(r"[A-Za-z0-9._-]+|[0-9A-Fa-f:.]*:[0-9A-Fa-f:.]*")
_PATH = re.compile(r"/?([\w .,+=~-]+(/[\w .,+=~-]+)*/?)?")  # matches in linear time
_NO_PATH = re.compile(r"(?!/[^/]).*(:.*@|(//|:/).*[@?#])", re.DOTALL)
"""Matches a URL without its scheme (`USER:PASSWORD@HOST`), or with `//` or `:/` for `://`, that may
have a login or a query. An absolute path does not match."""
_ANYWHERE = re.compile(r"[A-Za-z][A-Za-z0-9+.-]{0,30}(://|:/|//)\S*")
"""Matches a URL in a text, also one with `:/` or `//` for `://` by mistake."""
_BEFORE_SECRETS = re.compile(r"[@?#]")
_TRAILING = ".,;:!?'\"`)]}>"
"""Punctuation marks that can follow a URL in a sentence and are not part of the URL."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Address:
    """A URL or path that is safe to show: login, query and parts that may be secret are hidden.

    `str` returns the text to show. If a part is hidden, that text cannot be opened as a URL (see
    `is_whole`).
    """

    scheme: str = ""
    """Scheme of the URL, for example `s3`; empty for a path."""
    host: str = ""
    port: int | None = None
    path: str = ""
    """Path, with its leading slash if it has one."""
    has_login: bool = False
    has_query: bool = False
    is_hidden: bool = False
    """True if only the scheme is shown, because the URL is chained or its parts are ambiguous."""

    @property
    def is_whole(self) -> bool:
        """True if no part of this address is hidden."""
        return not (self.is_hidden or self.has_login or self.has_query) and HIDDEN not in str(self)

    def __str__(self) -> str:
        head = f"{self.scheme}://" if self.scheme else ""
        if self.is_hidden:
            return f"{head}{HIDDEN}"
        host = f"[{self.host}]" if ":" in self.host else self.host
        port = "" if self.port is None else f":{self.port}"
        login, query = (f"{HIDDEN}@" if self.has_login else ""), f"?{HIDDEN}"
        return f"{head}{login}{host}{port}{self.path}{query if self.has_query else ''}"

    @classmethod
    def of_parts(  # noqa: PLR0913  an address has as many
        cls,
        *,
        scheme: str,
        host: str = "",
        port: int | None = None,
        path: str = "",
        has_login: bool = False,
        query: str = "",
    ) -> "Address":
        """Build an address from the components of a URL, hiding those that may be secret.

        The caller splits the URL with the library that opens it. If the password contains an
        unquoted reserved character, such as `/`, a part of the password and the `@` after it can be
        in the host, path or query. So if one of these contains `@`, only the scheme is shown.
        """
        scheme = scheme if _SCHEME.fullmatch(scheme) else HIDDEN
        if any("@" in part for part in (host, path, query)):
            return cls(scheme=scheme, is_hidden=True)
        if path and not _PATH.fullmatch(path):
            path = f"/{HIDDEN}"
        return cls(
            scheme=scheme,
            host=host if not host or _HOST.fullmatch(host) else HIDDEN,
            port=port,
            path=path,
            has_login=has_login,
            has_query=bool(query),
        )

    @classmethod
    def of_path(cls, path: str, scheme: str = "") -> "Address":
        """Return the address of a local path; hidden if the path may be or contain a URL."""
        is_url = _NO_PATH.match(path) is not None or "://" in path
        is_url = is_url or without_secrets(path) != path
        return cls(scheme=scheme, is_hidden=True) if is_url else cls(scheme=scheme, path=path)


def web_address(url: str) -> Address:
    """Return the URL of a server, or a text `HOST:PORT`, as an address that hides secrets."""
    if "://" in url:
        return _url_address(url)
    shown = _url_address(f"http://{url}")
    is_plain = shown.is_whole and not shown.path
    return Address(host=shown.host, port=shown.port) if is_plain else Address(is_hidden=True)


def store_address(url: str) -> Address:
    """Return a path or fsspec URL as an address that hides secrets.

    A chained URL (`filecache::s3://...`) is hidden except for the scheme of the last link (`s3`).
    """
    if "://" not in url:
        return Address.of_path(url)
    if url.startswith("file:///"):
        return Address.of_path(url.removeprefix("file://"), "file")
    link = url.rpartition("::")[2]
    shown = _url_address(link)
    return shown if link == url else Address(scheme=shown.scheme, is_hidden=True)


def _url_address(url: str) -> Address:
    scheme, mark, _ = url.partition("://")
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        mark = ""
    if not mark:
        return Address(scheme=scheme if _SCHEME.fullmatch(scheme) else "", is_hidden=True)
    login = parts.netloc.rpartition("@")[0]
    is_container = scheme in _CONTAINERS and _CONTAINER.fullmatch(login) is not None
    shown = Address.of_parts(
        scheme=parts.scheme or scheme,
        host=parts.hostname or "",
        port=port,
        path=parts.path,
        has_login="@" in parts.netloc and not is_container,
        query=parts.query + parts.fragment,
    )
    return replace(shown, host=f"{login}@{shown.host}") if is_container else shown


_CONTAINERS = {"abfs", "abfss"}
"""Azure protocols. Their URLs have the container before the `@`, where others have the login."""
_CONTAINER = re.compile(r"[a-z0-9-]{3,63}")


def reason(error: BaseException, shown: Address) -> str:
    """Return the text of a library's error, on one line; only its type if it may quote a secret."""
    text = " ".join(str(error).split()) if shown.is_whole else ""
    return text or type(error).__name__


def without_secrets(text: str) -> str:
    """Return a text in which the login, query and other secrets of each URL are hidden."""

    def replaced(found: re.Match[str]) -> str:
        whole = found[0]
        url = whole.rstrip(_TRAILING)
        is_plain = _BEFORE_SECRETS.search(url) is None
        if found[1] != "://":
            return whole if is_plain else HIDDEN + whole[len(url) :]
        path = url.removeprefix("file://").removeprefix("sqlite://")
        address = web_address(url)
        if path != url and path.startswith("/"):
            second = None if is_plain else _ANYWHERE.search(path)
            end = len(url) if second is None else len(url) - len(path) + second.start()
            shown = url[:end] + (HIDDEN if second else "")
        else:
            shown = url if address.is_whole else str(address)
        return shown.partition("?")[0] + whole[len(url) :]

    return _ANYWHERE.sub(replaced, text)


def local_path(text: str | Path) -> Path:
    """Return a path with a leading `~` or `~NAME` expanded, unless there is no such user."""
    try:
        return Path(text).expanduser()
    except RuntimeError:
        return Path(text)
