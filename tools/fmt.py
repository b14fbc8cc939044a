# SPDX-License-Identifier: Apache-2.0
"""Formats C and C++ with one pinned version of clang-format, so that no two machines disagree.

Its wheel is only needed by `./dev fmt` and the check, so it is installed when first asked for."""

import concurrent.futures
import importlib.metadata
import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
VERSION = "23.1.5"


def formatter():
    try:
        have = importlib.metadata.version("clang-format")
    except importlib.metadata.PackageNotFoundError:
        have = None
    if have != VERSION:
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", f"clang-format=={VERSION}"]
        subprocess.run(command, check=True)
    return os.path.join(os.path.dirname(sys.executable), "clang-format")


SUFFIXES = (".c", ".h", ".cpp")


def files():
    for folder in ("include", "src", "shim", "tests", "examples/c"):
        for suffix in SUFFIXES:
            yield from sorted((ROOT / folder).rglob(f"*{suffix}"))


def main(arguments):
    check = "--check" in arguments
    tool = formatter()
    named = [pathlib.Path(name).resolve() for name in arguments if not name.startswith("-")]
    chosen = [path for path in named if path.suffix in SUFFIXES] if named else list(files())

    def one(path):
        text = path.read_bytes()
        done = subprocess.run([tool, f"--assume-filename={path}"], input=text, capture_output=True, check=True, cwd=ROOT)
        if done.stdout == text:
            return None
        if not check:
            path.write_bytes(done.stdout)
        return path

    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        changed = [path.relative_to(ROOT) for path in pool.map(one, chosen) if path]
    for path in changed:
        print(f"{path}: {'not formatted, run ./dev fmt' if check else 'formatted'}")
    if check and not changed:
        print(f"format: {len(chosen)} files as clang-format {VERSION} writes them")
    return 1 if check and changed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
