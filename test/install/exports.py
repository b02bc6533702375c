#!/usr/bin/env python3
"""exports.py LIBRARY INCLUDE: libpif.so exports what its headers declare of the C interface, some of C++, and nothing
else, all with a version."""
import re
import subprocess
import sys

library, include = sys.argv[1:]
OURS = re.compile(r"(pif|gfs|pvfs)_\w+$|pif::(Client|File|ParallelController|ParallelMember|Error|Format)::"
                  r"|pif::(import_stream|export_stream|export_blocks|code_name|code_from_number|version)\("
                  r"|pif::client::(open_counter|add_to_counter|close_counter)\("
                  r"|pif::parity::Layout::|pif::patterns::CompiledPattern::"
                  r"|pif::patterns::(list|member_of|nested_batched|nested_strided|partition|range|simple_strided"
                  r"|validate|view)(\[abi:cxx11\])?\(|pif::detail::assertion_failed\(")


def main():
    listing = subprocess.run(["nm", "-DC", "--defined-only", "--with-symbol-versions", library], check=True, text=True,
                             capture_output=True).stdout
    names = set()
    for line in listing.splitlines():
        kind, name = line.split(None, 2)[1:]
        if kind == "A":  # the version itself
            continue
        plain, _, version = name.rpartition("@@")
        if version != "PIF_0.1" or not OURS.match(plain):
            sys.exit(f"exported, though no interface: {name}")
        names.add(plain)
    declared = set()
    for header in ("pif", "galley", "pvfs"):
        with open(f"{include}/pif/client/{header}.h", encoding="utf-8") as text:
            code = re.sub(r"/\*.*?\*/", "", text.read(), flags=re.S)
        declared |= set(re.findall(r"\b((?:pif|gfs|pvfs)_\w+)\((?!\*)", code))
    missing = {name for name in declared if not name.isupper()} - names
    if missing or len(declared) < 80:
        sys.exit(f"declared, but not exported: {sorted(missing)}; {len(declared)} are declared")
    print(f"{len(names)} names, {len(declared)} of them C")


main()
