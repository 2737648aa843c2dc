"""ManifestStore: one JSON file (manifest) per stage of a store.

    stages/<2 hex>/<key>.json    records, facts, environment, checksum of the state

A stage counts as stored once its manifest exists; a state without a manifest does not count.
"""

from collections.abc import Iterable, Mapping

from mixup_core.store.files import Files
from mixup_core.store.manifests import Stage, is_manifest, seal, stage_content
from mixup_core.store.names import MANIFEST_NAME, manifest_name
from mixup_core.store.sealed_files import SealedFiles


class ManifestStore:
    """Reads and replaces the manifests (JSON files) of stages, by stage key. It is stateless."""

    def __init__(self, files: Files) -> None:
        """Open the manifests among the files of a store (`Store.files`)."""
        self._files = files
        self._sealed = SealedFiles(files)

    def keys(self) -> list[str]:
        """Return the keys of all stages that have a manifest (JSON file); no file is validated."""
        found = map(MANIFEST_NAME.fullmatch, self._files.names("stages"))
        return [match["key"] for match in found if match]

    def read(self, key: str) -> Stage | None:
        """Return the stage of a stage key; None if it is missing or its file is damaged."""
        return next(iter(self.read_all([key]).values()), None)

    def read_all(self, keys: Iterable[str]) -> Mapping[str, Stage]:
        """Return the stages stored under given stage keys; leave out missing and damaged ones.

        The result maps keys to stages, in the order of `keys`.
        """
        names = {manifest_name(key): key for key in keys}
        found = {}
        for name, sealed in self._files.read_present(names):
            stage = self._sealed.record(Stage, name, sealed, names[name])
            if stage is not None:
                found[stage.key] = stage
        return {key: found[key] for key in names.values() if key in found}

    def damaged(self, keys: Iterable[str]) -> list[str]:
        """Return those of the given stage keys whose manifest (JSON file) is damaged, or missing.

        Damaged ones are moved to quarantine. This is cheaper than `read`, because manifests that
        match their sha256 are not parsed.
        """
        names = {manifest_name(key): key for key in keys}
        good = {
            names[name]
            for name, sealed in self._files.read_present(names)
            if is_manifest(sealed, names[name])
            or self._sealed.record(Stage, name, sealed, names[name]) is not None
        }
        return [key for key in names.values() if key not in good]

    def replace(self, stage: Stage) -> None:
        """Replace environment and state checksum in the manifest of a stage; keep the rest."""
        name = manifest_name(stage.key)
        sealed = self._sealed.read(name)
        there = None if sealed is None else self._sealed.content(name, sealed)
        content = stage_content(stage)
        new = {part: content[part] for part in ("environment", "state")}
        self._sealed.write(name, seal((there or content) | new))
