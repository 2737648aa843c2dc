"""Upload: the files of the working directory that are sent with a job.

Results and credentials are left out.
"""

import fnmatch
import os
import re
import zipfile
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from pathspec import GitIgnoreSpec

from mixup_core.rules import printable
from mixup_core.store.local_files import open_regular

_IGNORE_FILES = (".gitignore", ".rayignore")
_Specs = tuple[tuple[Path, GitIgnoreSpec], ...]
"""Patterns of ignore files, each file with the folder that its patterns apply to."""
_CREDENTIAL_FOLDERS = (
    ".ssh", ".aws", ".azure", ".gcloud", ".kube", ".docker", ".gnupg", ".password-store", ".kaggle",
    ".huggingface", ".terraform.d", ".oci", ".ray", ".mlflow", ".config", ".local", ".cache",
    ".mozilla", ".thunderbird", ".subversion", ".m2", ".gradle", ".cargo", ".gem", ".vnc", ".pki",
    ".jupyter", ".ipython", ".composer", ".minikube", ".snowflake", ".databricks", ".putty",
    ".mc", ".gsutil", ".globus", ".irods", ".snowsql",
    "keyrings",
)  # fmt: skip
"""Lower-case names of folders in which programs store credentials, including folders that desktop
systems keep in home directories."""
_CREDENTIAL_FILES = (
    ".pgpass", "pgpass.conf", ".pg_service.conf", ".my.cnf", ".mylogin.cnf", ".netrc", "_netrc",
    ".dockercfg", ".git-credentials", ".npmrc", ".yarnrc.yml", ".pypirc", ".s3cfg", ".boto",
    ".databrickscfg", "kaggle.json", ".vault-token", "token", "*_token", "access_token*",
    "*kubeconfig", "kubeconfig-*", "*kubeconfig.json", "*kubeconfig.yaml", "*kubeconfig.yml",
    "rootkey.csv", "*accesskeys.csv", "clouds.yaml", ".dockerconfigjson", ".passwd-s3fs",
    ".terraformrc", ".comet.config", "clearml.conf", "auth.json", ".vault_pass*",
    "application_default_credentials.json", "*.keyring", ".condarc", "pip.conf", ".pip.conf",
    ".wgetrc", ".curlrc", ".authinfo", ".viminfo", ".lesshst", ".htpasswd",
    ".smbcredentials", "rclone.conf",
    ".env", ".env.*", ".envrc", "*.env", "*.token", "*.pem", "*.key", "*.p12", "*.pfx", "*.jks",
    "*.keystore", "*.kdbx", "*.ppk", "*.ovpn", "*.tfstate", "*.tfstate.*", "*.tfvars", ".*_history",
    "id_rsa*", "id_dsa*", "id_ecdsa*", "id_ed25519*", "client_secret*.json",
    "service-account*.json", "service_account*.json", "credentials", ".credentials*",
    *(f"{name}.{suffix}" for name in ("credentials", "secrets", ".secrets")
      for suffix in ("json", "toml", "yaml", "yml", "csv", "ini", "txt")),
)  # fmt: skip
"""Lower-case names of files in which programs store credentials."""
_KEY_NAME = re.compile(r"id_[a-z0-9]+(_sk)?")
"""Pattern of the file names without suffix that `ssh-keygen` suggests for private keys."""
_NAMED = re.compile(r"!(.*/)?[^/]*\w[^/]*/?\s*$")
"""Pattern of the lines of a .rayignore that name a harmless file or folder, unlike `!*`."""
_KEY_HEAD = re.compile(
    rb"(?m)^[ \t]*(-----BEGIN [A-Z0-9 ]*PRIVATE KEY( BLOCK)?-----\s*$|PuTTY-User-Key-File-\d"
    rb"|client-(certificate|key)-data:\s*\S|oauth_token:\s*\S|aws_secret_access_key\s*=\s*\S)"
    rb'|\A\s*\{(?s:.*?)("private_key"\s*:\s*"-----BEGIN|"auths"\s*:\s*\{)'
)
"""Pattern of credentials whose files may have any name: private keys, also in JSON (Google Cloud),
and files of kubectl, gh, AWS and Docker."""
_HEAD = 4096
"""Number of bytes at the start of a file that are searched for `_KEY_HEAD`."""
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
        walk = _Walk(folder, frozenset(kept))
        specs = ((folder, GitIgnoreSpec.from_lines(excludes)),)
        files = tuple(sorted(walk.files(folder, "", specs, ())))
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

    def __init__(self, folder: Path, kept: frozenset[Path]) -> None:
        """Create a walk that has found no files yet.

        Args:
            folder: The working directory.
            kept: Files and folders that are never uploaded, as for `Upload.of`.
        """
        self._top = os.path.realpath(folder)
        self._kept = kept
        self._open: set[str] = set()
        """Folders that contain the current one, links resolved, to detect links that lead back."""
        self.credentials: list[str] = []

    def files(
        self,
        folder: Path,
        prefix: str,
        specs: _Specs,
        harmless: _Specs,
        *,
        in_results: bool = False,
    ) -> Iterator[str]:
        """Yield the names of the files to upload in a folder and its subfolders.

        Args:
            folder: The folder.
            prefix: Path of the folder inside the upload; empty, or with a final slash.
            specs: Ignore patterns in force.
            harmless: Patterns of harmless files and folders in force.
            in_results: True if the folder belongs to results that were named harmless.
        """
        real = os.path.realpath(folder)
        if real in self._open:
            return
        self._open.add(real)
        own = [_lines(folder / name) for name in _IGNORE_FILES]
        specs = (*specs, *((folder, GitIgnoreSpec.from_lines(lines)) for lines in own if lines))
        if named := [line for line in _lines(folder / ".rayignore") if _NAMED.match(line)]:
            harmless = (*harmless, (folder, GitIgnoreSpec.from_lines(named)))
        for entry in sorted(os.scandir(folder), key=lambda entry: entry.name):
            path, name = folder / entry.name, f"{prefix}{entry.name}"
            if self._is_kept(path) or _is_ignored(path, specs, is_folder=entry.is_dir()):
                continue
            is_harmless = _is_named(path, harmless, is_folder=entry.is_dir())
            if entry.is_dir():
                is_result = in_results or _holds_results(path)
                if is_result and not (in_results or is_harmless):
                    continue
                folders = (entry.name, *self._path_of_link(path))
                if _has_credential_folder(folders) and not is_harmless:
                    self.credentials.append(f"{name}/")
                else:
                    yield from self.files(path, f"{name}/", specs, harmless, in_results=is_result)
            elif entry.is_file():
                folders = self._path_of_link(path)[:-1]
                is_secret = _has_credential_folder(folders) or _is_credential(path)
                if is_secret and not is_harmless:
                    self.credentials.append(name)
                else:
                    yield _checked(name)
        self._open.remove(real)

    def _path_of_link(self, path: Path) -> tuple[str, ...]:
        """Return the parts of the path to the target of a link; empty if the path is no link.

        Below the working directory, the path is relative: the folders around it are harmless.
        """
        if not path.is_symlink():
            return ()
        real = Path(os.path.realpath(path))
        if real.is_relative_to(self._top):
            return real.relative_to(self._top).parts
        return path.readlink().parts + real.parts

    def _is_kept(self, path: Path) -> bool:
        real = Path(os.path.realpath(path))
        return any(real == kept or real.is_relative_to(kept) for kept in self._kept)


def _lines(file: Path) -> list[str]:
    return file.read_text(errors="replace").splitlines() if file.is_file() else []


def _is_ignored(path: Path, specs: _Specs, *, is_folder: bool) -> bool:
    end = "/" if is_folder else ""
    return any(spec.match_file(f"{path.relative_to(folder)}{end}") for folder, spec in specs)


def _is_named(path: Path, harmless: _Specs, *, is_folder: bool) -> bool:
    """Return True if a pattern matches a path itself, and not only because of a parent folder."""
    for folder, spec in harmless:
        relative = path.relative_to(folder)
        name = f"{relative}/" if is_folder else str(relative)
        for pattern in spec.patterns:
            if pattern.match_file(name) and not pattern.match_file(f"{relative.parent}/"):
                return True
    return False


def _has_credential_folder(folders: Iterable[str]) -> bool:
    return any(_is_like(folder.lower(), _CREDENTIAL_FOLDERS) for folder in folders)


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
