"""Where a lake is: a folder, or a bucket of S3-compatible storage. A file appears whole under its name, or not."""

from __future__ import annotations

import os
import secrets
import stat
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from state_ledger import private, unfinished
from state_ledger.homes import cache_folder, expanded
from state_ledger.lake.errors import LakeError, LakeMissing

PART = ".part"
"""How names end of files that are being written; whoever lists a lake passes them over."""

PARTS = "parts"
"""The folder of a lake in which they are made, where it is a folder itself."""

BUCKETS = ("s3", "gs", "gcs", "abfs", "abfss", "hdfs")
"""The kinds of URL that pyarrow opens."""


class Listed(NamedTuple):
    """A file of a lake. path: below the lake. modified: epoch seconds, by the clock of the storage."""

    path: str
    bytes: int
    modified: float


class Place(ABC):
    """The files of one lake by their paths below it, with `/` between the parts.

    url: as it was given. Every method raises LakeError with a sentence if the storage refuses.
    """

    url: str

    @abstractmethod
    def read(self, path: str) -> bytes | None:
        """The bytes of a file; None if there is none."""

    @abstractmethod
    def look(self, path: str) -> Listed | None:
        """The size and the age of a file; None if there is none."""

    @abstractmethod
    def put(self, path: str, source: Path) -> None:
        """Makes a file of what is in another, in the place of what was there; `source` stays or goes."""

    @abstractmethod
    def list(self, below: str = "") -> Iterator[Listed]:
        """Every file below a path, in any order; none if there is no such path."""

    @abstractmethod
    def remove(self, path: str) -> None:
        """Removes a file, if it is there."""

    @abstractmethod
    def new_part(self) -> Path:
        """Where on this machine a file is made that is then `put`, as near to the lake as can be."""

    def local(self, path: str) -> Path | None:
        """The file on this machine; None where the lake is elsewhere."""
        return None

    def write(self, path: str, content: bytes) -> None:
        """Makes a file of these bytes, in the place of what was there."""
        with self.part() as part:
            with self.doing("written to", path):
                part.write_bytes(content)
            self.put(path, part)

    @contextmanager
    def part(self) -> Iterator[Path]:
        """A name for a file that is being made; what is still there in the end goes."""
        part = self.new_part()
        try:
            yield part
        finally:
            with suppress(OSError):
                part.unlink(missing_ok=True)

    @contextmanager
    def doing(self, what: str, path: str) -> Iterator[None]:
        """What the system or the storage says becomes a sentence. what: `read`, `written to`, …"""
        try:
            yield
        except LakeError:
            raise
        except Exception as error:
            # Storage is reached through pyarrow, which has errors of its own beside those of the system.
            if not isinstance(error, OSError) and not type(error).__module__.startswith("pyarrow"):
                raise
            why = getattr(error, "strerror", None) or " ".join(str(error).split())
            raise LakeError(f"The lake {self.url} cannot be {what} ({path or 'its folder'}: {why}).") from error


class Folder(Place):
    """A lake in a folder of this machine, or of a network drive.

    For this user alone, unless the folder was made before: then what is made in it has its rights.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        self.url = str(root)

    def read(self, path: str) -> bytes | None:
        with self.doing("read", path):
            try:
                return (self.root / path).read_bytes()
            except (FileNotFoundError, NotADirectoryError):
                return None

    def look(self, path: str) -> Listed | None:
        with self.doing("read", path):
            try:
                status = (self.root / path).stat()
            except (FileNotFoundError, NotADirectoryError):
                return None
        return Listed(path, status.st_size, status.st_mtime)

    def put(self, path: str, source: Path) -> None:
        target = self.root / path
        with self.doing("written to", path):
            made = self._make(target.parent)
            source.chmod(self._rights() & 0o666)
            _to_disk(source)
            source.replace(target)
            for folder in (target.parent, *(each.parent for each in made)):
                _to_disk(folder)

    def list(self, below: str = "") -> Iterator[Listed]:
        with self.doing("read", below):
            for folder, names, files in os.walk(self.root / below, onerror=_unless_gone):
                names.sort()
                for name in sorted(files):
                    file = Path(folder) / name
                    with suppress(FileNotFoundError):
                        status = file.stat()
                        path = PurePosixPath(file.relative_to(self.root).as_posix())
                        yield Listed(str(path), status.st_size, status.st_mtime)

    def remove(self, path: str) -> None:
        with self.doing("written to", path):
            (self.root / path).unlink(missing_ok=True)

    def new_part(self) -> Path:
        # On the same file system, where a file gets its name in one step.
        folder = self.root / PARTS
        with self.doing("written to", PARTS):
            self._make(folder)
        return folder / f".{os.getpid()}-{secrets.token_hex(6)}{PART}"

    def local(self, path: str) -> Path | None:
        return self.root / path

    def _rights(self) -> int:
        return stat.S_IMODE(self.root.stat().st_mode)

    def _make(self, folder: Path) -> tuple[Path, ...]:
        """Makes a folder of the lake and those above it that are missing, which it returns."""
        private.folder(self.root)
        missing = tuple(each for each in (folder, *folder.parents) if not each.exists())
        for each in reversed(missing):
            with suppress(FileExistsError):  # another push has just made it
                each.mkdir()
                each.chmod(self._rights())
        return missing


class Bucket(Place):
    """A lake in storage that pyarrow reaches: a file appears when it was sent to its end."""

    def __init__(self, url: str) -> None:
        self.url = _without_secrets(url)
        fs = _pyarrow_fs()
        with self.doing("opened", ""):
            try:
                self._files, root = _open(fs, url)
            except ValueError as error:
                raise LakeError(f"{self.url} cannot be the URL of a lake ({error}).") from error
        self._root = root.rstrip("/")
        self._fs = fs

    def read(self, path: str) -> bytes | None:
        with self.doing("read", path):
            try:
                with self._files.open_input_file(self._at(path)) as file:
                    return bytes(file.read())
            except FileNotFoundError:
                return None

    def look(self, path: str) -> Listed | None:
        with self.doing("read", path):
            (found,) = self._files.get_file_info([self._at(path)])
            return None if found.type != self._fs.FileType.File else self._listed(found)

    def put(self, path: str, source: Path) -> None:
        # In one piece, since what is sent in several could be left half done.
        with self.doing("written to", path), self._files.open_output_stream(self._at(path)) as out:
            out.write(source.read_bytes())

    def list(self, below: str = "") -> Iterator[Listed]:
        with self.doing("read", below):
            selector = self._fs.FileSelector(self._at(below), recursive=True, allow_not_found=True)
            for found in self._files.get_file_info(selector):
                if found.type == self._fs.FileType.File:
                    yield self._listed(found)

    def remove(self, path: str) -> None:
        with self.doing("written to", path), suppress(FileNotFoundError):
            self._files.delete_file(self._at(path))

    def new_part(self) -> Path:
        # For this user alone: what is made there has not passed the rights of the storage.
        folder = cache_folder() / "lake-parts"
        with self.doing("written to", str(folder)):
            private.folder(folder)
        return unfinished.place("lake", folder)

    def _listed(self, found: Any) -> Listed:
        modified = found.mtime.timestamp() if found.mtime is not None else 0.0
        return Listed(found.path[len(self._root) + 1 :], int(found.size), modified)

    def _at(self, path: str) -> str:
        return f"{self._root}/{path}" if path else self._root


def place_of(url: str | Path) -> Place:
    """The place that a URL or a path names; it may not exist yet. Raises LakeError, LakeMissing."""
    text = str(url)
    kind, separator, _rest = text.partition("://")
    if not separator:
        if not text.strip():
            raise LakeError("Say where the lake is: a folder, or a URL such as s3://bucket/prefix.")
        return Folder(Path(os.path.abspath(expanded(text))))  # noqa: PTH100
    if kind == "file":
        from urllib.request import url2pathname

        return Folder(Path(url2pathname(urlsplit(text).path)))
    if kind not in BUCKETS:
        raise LakeError(f"{kind}://… cannot be a lake: name a folder, or a URL such as s3://bucket/prefix.")
    return Bucket(text)


def _open(fs: Any, url: str) -> tuple[Any, str]:
    """The file system of a URL, and where in it. Raises ValueError, OSError."""
    if url.startswith("s3:") and "allow_delayed_open" not in url:
        # So that a file of less than 5 MB is sent by one request: it costs three otherwise.
        with suppress(ValueError):  # pyarrow before 19 knows no such option
            return fs.FileSystem.from_uri(f"{url}{'&' if '?' in url else '?'}allow_delayed_open=true")  # type: ignore[no-any-return]
    return fs.FileSystem.from_uri(url)  # type: ignore[no-any-return]


def _without_secrets(url: str) -> str:
    """The URL as it may be shown: without what stands before an @, and without keys among its options."""
    parts = urlsplit(url)
    secret = ("access_key", "secret", "session")
    shown = [each for each in parts.query.split("&") if not each.lower().startswith(secret)]
    return parts._replace(netloc=parts.netloc.rpartition("@")[2], query="&".join(filter(None, shown))).geturl()


def _pyarrow_fs() -> Any:
    try:
        from pyarrow import fs
    except ImportError as error:
        raise LakeMissing from error
    return fs


def _unless_gone(error: OSError) -> None:
    if not isinstance(error, (FileNotFoundError, NotADirectoryError)):
        raise error


def _to_disk(path: Path) -> None:
    """Waits until a file, or the names in a folder, are on the disk; a folder cannot be waited for on Windows."""
    if os.name != "posix" and path.is_dir():
        return
    descriptor = os.open(path, os.O_RDONLY if os.name == "posix" else os.O_RDWR)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
