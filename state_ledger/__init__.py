"""The books of a Hermes Agent `state.db`, and the storage core that writes such files."""

from importlib.metadata import PackageNotFoundError, version

try:
    __version__ = version("state-ledger")
except PackageNotFoundError:  # a source tree on sys.path without an install
    __version__ = "0+unknown"
