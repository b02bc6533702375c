#!/usr/bin/env python3
"""Makes the module through which Python calls libpif.so, from the C header: no compiler is needed, and no structure is
written down twice.

  make_binding.py PIF_H TARGET     TARGET: the module's file, "_binding.py"
"""

import re
import sys

import cffi


def declarations(header):
    """The header's declarations as cffi reads them: without comments and what the preprocessor works on. Constants that
    are plain numbers stay."""
    text = re.sub(r"/\*.*?\*/", " ", header, flags=re.DOTALL)
    text = text.replace("UINT32_MAX", "4294967295")
    text = re.sub(r"#ifdef __cplusplus.*?#endif", "", text, flags=re.DOTALL)
    kept = []
    for line in text.splitlines():
        if re.match(r"#define \w+ \d+\s*$", line) or not line.startswith("#"):
            kept.append(line.rstrip())
    return "\n".join(line for line in kept if line) + "\n"


def main(words):
    if len(words) != 2:
        print(__doc__, file=sys.stderr)
        return 2
    with open(words[0], encoding="utf-8") as file:
        header = file.read()
    ffi = cffi.FFI()
    ffi.set_source("pif_fs._binding", None)
    ffi.cdef(declarations(header))
    ffi.emit_python_code(words[1])
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
