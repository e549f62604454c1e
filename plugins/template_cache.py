"""Templates are compiled once on a machine, not at every start: half of what the first page costs.

Jinja's own cache does it, in the user's cache folder. What is in there is code: a folder that somebody
else could write to is not used.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import jinja2
from datasette import hookimpl
from jinja2 import Environment, FileSystemBytecodeCache
from jinja2.bccache import Bucket

from state_ledger import homes, private
from state_ledger.errors import NoHomeError


class TemplateCache(FileSystemBytecodeCache):
    """Jinja's cache, told apart by all that compiled code depends on; a disk that is full only makes it slow."""

    def get_bucket(self, environment: Environment, name: str, filename: str | None, source: str) -> Bucket:
        # Extensions rewrite sources before they are compiled: it is the rewritten text that has to be the same.
        compiled = environment.preprocess(source, name, filename)
        kind = f"{jinja2.__version__} {environment.is_async} {sorted(environment.extensions)}"
        return super().get_bucket(environment, name, filename, f"{kind}\n{compiled}")

    def load_bytecode(self, bucket: Bucket) -> None:
        with suppress(OSError):
            super().load_bytecode(bucket)

    def dump_bytecode(self, bucket: Bucket) -> None:
        with suppress(OSError):
            super().dump_bytecode(bucket)


@hookimpl(trylast=True)
def prepare_jinja2_environment(env: Environment) -> None:
    if env.bytecode_cache is None and (folder := private_folder()) is not None:
        env.bytecode_cache = TemplateCache(str(folder))


def private_folder() -> Path | None:
    """The folder of compiled templates, made if it is missing; None if it cannot be, or is not ours alone to write."""
    try:
        folder = homes.cache_folder() / "templates"
        private.folder(folder)
        ours = all(private.is_ours(place, 0o022) for place in (folder, folder.parent))
    except (OSError, NoHomeError):
        return None
    return folder if ours else None
