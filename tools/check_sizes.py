# SPDX-License-Identifier: Apache-2.0
"""Checks file sizes and the share of C: small files with one subject, and no logic creeping into C++."""

import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
LIMITS = {".c": 600, ".cpp": 600, ".h": 350, ".py": 600}
FOLDERS = ("include", "src", "shim", "python", "tests", "tools", "bench", "examples")
SPECIAL = {"CMakeLists.txt": 150}
C_SHARE = 0.85


def lines(path):
    return len(path.read_text().splitlines())


def sources():
    for folder in FOLDERS:
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix in LIMITS and path.is_file() and "__pycache__" not in path.parts:
                yield path


def main():
    found = []
    native = {"c": 0, "c++": 0}
    for path in sources():
        name, count = path.relative_to(ROOT).as_posix(), lines(path)
        if count > LIMITS[path.suffix]:
            found.append(f"{name}: {count} lines, expected at most {LIMITS[path.suffix]}")
        if path.suffix in (".c", ".h", ".cpp", ".py") and count:
            head = path.read_text().splitlines()[:2]
            if not any("SPDX-License-Identifier: Apache-2.0" in line for line in head):
                found.append(f"{name}: expected an SPDX-License-Identifier line first")
        if name.startswith("shim/"):
            native["c++"] += count
        elif path.suffix in (".c", ".h"):
            native["c"] += count
    for name, limit in SPECIAL.items():
        count = lines(ROOT / name)
        if count > limit:
            found.append(f"{name}: {count} lines, expected at most {limit}")
    total = sum(native.values())
    share = native["c"] / total if total else 1.0
    if share < C_SHARE:
        found.append(f"C is {share:.1%} of {total} native lines, expected at least {C_SHARE:.0%}: move logic out of shim/")
    print("\n".join(found) if found else f"sizes: C is {share:.1%} of {total} native lines")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
