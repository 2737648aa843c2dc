"""Upload: the files of the working directory that are sent with a job.

Results and credentials are left out.
"""

import fnmatch
import os
import re
import zipfile
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from pathspec import GitIgnoreSpec

from mixup_core.rules import printable
from mixup_core.store.local_files import open_regular

_IGNORE_FILES = (".gitignore", ".rayignore")
_CREDENTIAL_FOLDERS = (
    ".ssh", ".aws", ".azure", ".gcloud", ".kube", ".docker", ".gnupg", ".password-store", ".kaggle",
    ".huggingface", ".terraform.d", ".oci", ".ray", ".mlflow", ".config", ".local", ".cache",
    ".mozilla", ".thunderbird", ".subversion", ".m2", ".gradle", ".cargo", ".gem", ".vnc", ".pki",
    ".jupyter", ".ipython", ".composer", ".minikube", ".snowflake", ".databricks", ".putty",
    "keyrings",
)  # fmt: skip
"""Lower-case names of folders in which programs store credentials, including folders that desktop
systems keep in home directories."""
_CREDENTIAL_FILES = (
    ".pgpass", "pgpass.conf", ".pg_service.conf", ".my.cnf", ".mylogin.cnf", ".netrc", "_netrc",
    ".dockercfg", ".git-credentials", ".npmrc", ".yarnrc.yml", ".pypirc", ".s3cfg", ".boto",
    ".databrickscfg", "kaggle.json", ".vault-token", "token", "kubeconfig", "*.kubeconfig",
    "application_default_credentials.json", "*.keyring", ".condarc", "pip.conf", ".pip.conf",
    ".wgetrc", ".curlrc", ".authinfo", ".viminfo", ".lesshst", ".htpasswd",
    ".smbcredentials", "rclone.conf",
    ".env", ".env.*", ".envrc", "*.env", "*.token", "*.pem", "*.key", "*.p12", "*.pfx", "*.jks",
    "*.keystore", "*.kdbx", "*.ppk", "*.ovpn", "*.tfstate", "*.tfvars", ".*_history",
    "id_rsa*", "id_dsa*", "id_ecdsa*", "id_ed25519*", "client_secret*.json",
    "service-account*.json", "service_account*.json", "credentials", ".credentials*",
    *(f"{name}.{suffix}" for name in ("credentials", "secrets", ".secrets")
      for suffix in ("json", "toml", "yaml", "yml", "csv", "ini", "txt")),
)  # fmt: skip
"""Lower-case names of files in which programs store credentials."""
_KEY_NAME = re.compile(r"id_[a-z0-9]+(_sk)?")
"""Pattern of the file names without suffix that `ssh-keygen` suggests for private keys."""
_KEY_HEAD = re.compile(
    rb"(?m)^(-----BEGIN [A-Z0-9 ]*PRIVATE KEY( BLOCK)?-----\s*$|PuTTY-User-Key-File-\d)"
)
_HEAD = 4096
"""Number of bytes at the start of a file that are searched for the first line of a private key."""
_RESULTS = (("stages", "studies"), ("mlflow.db", "store"), ("mlflow.db", "reports"),
            ("provenance.json", "runs.csv"))  # fmt: skip
"""Names that lie together in a store, in a results folder (`--home`) and in a report."""
_LARGEST = 500 * 2**20
"""Largest upload that Ray accepts, in bytes."""
_OLDEST = (1980, 1, 1, 0, 0, 0)
"""Time stamp of every file in an archive. With it, equal files give equal archives, which Ray
uploads only once."""


class UploadError(Exception):
    """The working directory cannot be uploaded; the message says why and what to do."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Upload:
    """The files of a folder that are sent with a job."""

    folder: Path
    files: tuple[str, ...]
    """Paths relative to the folder, in sorted order."""
    credentials: tuple[str, ...]
    """Excluded files and folders that look like credentials; the name of a folder ends with a
    slash."""

    @classmethod
    def of(cls, folder: Path, *, excludes: Sequence[str], kept: Collection[Path]) -> "Upload":
        """Find the files of a folder to send with a job.

        Ignored files, results and credentials are left out.

        Args:
            folder: The working directory.
            excludes: Patterns as in a .gitignore, in addition to the ignore files of each folder.
            kept: Resolved paths of files and folders to keep out of the upload.

        Raises:
            UploadError: If a file cannot be uploaded.
            OSError: If a folder or a file cannot be read.
        """
        walk = _Walk(frozenset(kept))
        files = tuple(
            sorted(walk.files(folder, "", ((folder, GitIgnoreSpec.from_lines(excludes)),)))
        )
        return cls(folder=folder, files=files, credentials=tuple(sorted(walk.credentials)))

    def num_bytes(self, name: str) -> int:
        """Return the size of a file of this upload, in bytes."""
        return (self.folder / name).stat().st_size

    def write(self, archive: Path) -> None:
        """Write the files of this upload to a zip archive.

        Raises:
            UploadError: If the archive is larger than Ray accepts.
        """
        with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as packed:
            for name in self.files:
                with open_regular(self.folder / name) as stream:
                    member = zipfile.ZipInfo(name, _OLDEST)
                    member.compress_type = zipfile.ZIP_DEFLATED
                    member.external_attr = os.fstat(stream.fileno()).st_mode << 16
                    packed.writestr(member, stream.read())
        if (size := archive.stat().st_size) > _LARGEST:
            raise UploadError(
                f"{self.folder}: the upload from this folder has {size / 1e6:,.0f} MB, but Ray "
                f"accepts at most {_LARGEST / 1e6:,.0f} MB; `--list-files` prints the files in it, "
                "and patterns in .rayignore leave files out"
            )


class _Walk:
    """Walks through a working directory to find files to upload and credentials to exclude."""

    def __init__(self, kept: frozenset[Path]) -> None:
        """Create a walk that has found no files yet.

        Args:
            kept: Files and folders that are never uploaded, as for `Upload.of`.
        """
        self._kept = kept
        self._open: set[str] = set()
        """Folders that contain the current one, links resolved, to detect links that lead back."""
        self.credentials: list[str] = []

    def files(
        self, folder: Path, prefix: str, specs: tuple[tuple[Path, GitIgnoreSpec], ...]
    ) -> Iterator[str]:
        """Yield the names of the files to upload in a folder and its subfolders.

        Args:
            folder: The folder.
            prefix: Path of the folder inside the upload; empty, or with a final slash.
            specs: Ignore patterns in force, each with the folder that they apply to.
        """
        real = os.path.realpath(folder)
        if real in self._open:
            return
        self._open.add(real)
        own = [(name, _spec(folder / name)) for name in _IGNORE_FILES]
        specs = (*specs, *((folder, spec) for _, spec in own if spec is not None))
        for entry in sorted(os.scandir(folder), key=lambda entry: entry.name):
            path, name = folder / entry.name, f"{prefix}{entry.name}"
            if self._is_kept(path) or _is_ignored(path, specs, is_folder=entry.is_dir()):
                continue
            if entry.is_dir():
                if _holds_results(path) and not _is_named_harmless(path, specs):
                    continue
                if _is_like(entry.name.lower(), _CREDENTIAL_FOLDERS) and not _is_named_harmless(
                    path, specs
                ):
                    self.credentials.append(f"{name}/")
                else:
                    yield from self.files(path, f"{name}/", specs)
            elif entry.is_file():
                if _is_credential(path) and not _is_named_harmless(path, specs):
                    self.credentials.append(name)
                else:
                    yield _checked(name)
        self._open.remove(real)

    def _is_kept(self, path: Path) -> bool:
        real = Path(os.path.realpath(path))
        return any(real == kept or real.is_relative_to(kept) for kept in self._kept)


def _spec(file: Path) -> GitIgnoreSpec | None:
    if not file.is_file():
        return None
    return GitIgnoreSpec.from_lines(file.read_text(errors="replace").splitlines())


def _is_ignored(
    path: Path, specs: Sequence[tuple[Path, GitIgnoreSpec]], *, is_folder: bool
) -> bool:
    end = "/" if is_folder else ""
    return any(spec.match_file(f"{path.relative_to(folder)}{end}") for folder, spec in specs)


def _is_named_harmless(path: Path, specs: Sequence[tuple[Path, GitIgnoreSpec]]) -> bool:
    """Return True if an ignore file has a pattern with `!` for a path, so that it is uploaded."""
    return any(
        spec.check_file(str(path.relative_to(folder))).include is False for folder, spec in specs
    )


def _holds_results(folder: Path) -> bool:
    """Return True if a folder is a home, a store or a report of any study."""
    return any(all((folder / name).exists() for name in names) for names in _RESULTS)


def _is_credential(path: Path) -> bool:
    """Return True if a file, or the target of a link, looks like a credential."""
    names = (path.name.lower(), Path(os.path.realpath(path)).name.lower())
    if any(map(_is_credential_name, names)):
        return True
    with open_regular(path) as stream:
        return _KEY_HEAD.search(stream.read(_HEAD)) is not None


def _is_credential_name(name: str) -> bool:
    return _KEY_NAME.fullmatch(name) is not None or _is_like(name, _CREDENTIAL_FILES)


def _is_like(name: str, patterns: Sequence[str]) -> bool:
    return any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)


def _checked(name: str) -> str:
    """Return a file name unchanged if an archive can contain it.

    Raises:
        UploadError: If the name is not UTF-8.
    """
    try:
        name.encode()
    except UnicodeEncodeError as error:
        raise UploadError(
            f"{printable(ascii(name))}: the name is not UTF-8, so the file cannot be uploaded; "
            "rename the file, or leave it out by a pattern in .rayignore"
        ) from error
    return name
