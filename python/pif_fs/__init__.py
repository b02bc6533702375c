"""PIF: a parallel interleaved file system, whose files lie on several disks at once.

    import pif_fs as pif

    with pif.up("/data/pif", n=4):                  # a file system in a folder, started
        fs = pif.connect("/data/pif")
        with fs.create("/lines", "lines") as out:
            out.write(["one", "two", "three"])
        fs.open_records("/lines")[1]                # b"two\\n"
        fs.sort("/lines", "/sorted")                # beside the disks, by all of them

fsspec knows it as "pif": pandas.read_csv("pif:///sorted.csv"). docs/PYTHON.md says more.
"""

from . import errors
from ._file import File
from ._library import PROGRAMS
from ._locations import Block, Node
from ._names import Info
from ._records import Records
from ._system import FileSystem, connect
from ._up import StartedSystem, up
from ._version import __version__
from ._writer import RecordWriter
from .errors import PifError, ToolError

__all__ = [
    "Block",
    "File",
    "FileSystem",
    "Info",
    "Node",
    "PROGRAMS",
    "PifError",
    "RecordWriter",
    "Records",
    "StartedSystem",
    "ToolError",
    "__version__",
    "connect",
    "errors",
    "up",
]
