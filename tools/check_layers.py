# SPDX-License-Identifier: Apache-2.0
"""Checks that includes only go downwards. BELOW is the table: what each room may include besides itself."""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent

# include/tt is the public API; its headers below a room's level are open to it (PUBLIC).
BELOW = {
    "base": [],
    "pjrt": ["base"],
    "hlo": ["base"],
    "ops": ["hlo", "base"],
    "cache": ["pjrt", "base"],
    "lazy": ["ops", "hlo", "pjrt", "base"],
    "run": ["lazy", "cache", "ops", "hlo", "pjrt", "base"],
    "api": ["run", "lazy", "cache", "ops", "hlo", "pjrt", "base"],
}
PUBLIC = {
    "base": ["status", "type"],
    "pjrt": ["status", "type"],
    "hlo": ["status", "type", "hlo"],
    "ops": ["status", "type", "hlo", "call", "storage", "device"],
    "cache": ["status", "type"],
    "lazy": None,
    "run": None,
    "api": None,
}
# System headers with a home: only these folders may include them.
OWNERS = {
    re.compile(r"^pjrt_c_api"): ["src/pjrt", "tests/fake_pjrt"],
    re.compile(r"^(ATen|c10|torch)/"): ["shim"],
    re.compile(r"^Python\.h$"): ["shim"],
}
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')


def includes(path):
    for number, line in enumerate(path.read_text().splitlines(), 1):
        match = INCLUDE.match(line)
        if match:
            yield number, match.group(1) == '"', match.group(2)


def complaint(place, local, name):
    """What is wrong with a file in folder `place` ("src/ops") including `name`, or None."""
    for pattern, folders in OWNERS.items():
        if pattern.match(name) and place not in folders:
            return f"<{name}> may only be included in {' and '.join(folders)}"
    if not local:
        return None
    room = name.split("/")[0] if "/" in name else None
    public = pathlib.PurePath(name).stem if room == "tt" else None
    if place == "include/tt":
        return None if public else f'"{name}": public headers include only tt/ headers'
    if place == "shim":
        return f'"{name}": shim/ includes only tt/ headers of the C side' if room in BELOW else None
    if place.startswith("examples"):
        return None if public else f'"{name}": examples include only tt/ headers'
    if place.startswith("src/"):
        own = place.split("/")[1]
        if public is not None:
            allowed = PUBLIC[own]
            return None if allowed is None or public in allowed else f'"{name}" is above {own}'
        if room is None or (room != own and room not in BELOW[own]):
            return f'"{name}": {own} may include {", ".join([own] + BELOW[own])}'
    return None


def problems():
    for folder in ("include", "src", "shim", "tests", "examples/c"):
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix not in (".c", ".h", ".cpp", ".def"):
                continue
            place = path.parent.relative_to(ROOT).as_posix()
            if place.startswith("src/") and place.split("/")[1] not in BELOW:
                yield f"{path.relative_to(ROOT)}: {place} is no room of the table in tools/check_layers.py"
                continue
            for number, local, name in includes(path):
                text = complaint(place, local, name)
                if text:
                    yield f"{path.relative_to(ROOT)}:{number}: {text}"


def main():
    found = list(problems())
    print("\n".join(found) if found else "layers: includes go downwards")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
