"""The file system a store lies on: a write-ahead log needs shared memory, which network mounts do not have.

Source: https://sqlite.org/wal.html ("All processes using a database must be on the same host computer"),
bug-log 18.
"""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from pathlib import Path

SHARED = frozenset(
    {
        "9p", "afs", "afpfs", "beegfs", "ceph", "cifs", "drvfs", "gfs2", "glusterfs", "gpfs", "lustre", "ncpfs",
        "nfs", "nfs3", "nfs4", "ocfs2", "orangefs", "prl_fs", "smb", "smb2", "smb3", "smbfs", "vboxsf", "virtiofs",
        "vmhgfs", "webdav",
    }
)  # fmt: skip
"""File systems that several machines, or a machine and its host, can have mounted at once."""
LOCAL_FUSE = frozenset({"fuseblk", "fuse.ntfs-3g", "fuse.exfat", "fuse.lowntfs-3g", "fuse.fuse-overlayfs"})
MOUNTS = Path("/proc/self/mounts")


@dataclass(frozen=True)
class Mount:
    """folder: where it is mounted. type: as the system names it, for instance `ext4` or `nfs4`."""

    folder: str
    type: str

    @property
    def is_shared(self) -> bool:
        """Whether another machine may have it too, or a program stands in for the file system."""
        return self.type in SHARED or (self.type.startswith("fuse.") and self.type not in LOCAL_FUSE)


def mount_of(path: str | Path, mounts: Path = MOUNTS) -> Mount | None:
    """The mount that a file lies on; None where the system does not tell (other than Linux).

    mounts: the table, as `/proc/self/mounts` has it.
    """
    if not sys.platform.startswith("linux"):
        return None
    try:
        lines = mounts.read_text(encoding="utf-8", errors="surrogateescape").splitlines()
    except OSError:
        return None
    real = os.path.realpath(path)
    best: Mount | None = None
    for line in lines:
        words = line.split(" ")
        if len(words) < 3:
            continue
        folder = _plain(words[1])
        # Of two mounts on one folder the later hides the earlier.
        if _within(real, folder) and (best is None or len(folder) >= len(best.folder)):
            best = Mount(folder, words[2])
    return best


def _within(path: str, folder: str) -> bool:
    return folder == "/" or path == folder or path.startswith(folder.rstrip("/") + "/")


def _plain(word: str) -> str:
    """A folder as the table spells it: blanks and backslashes stand as octal numbers."""
    for code, character in (("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")):
        word = word.replace(code, character)
    return word
