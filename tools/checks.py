# SPDX-License-Identifier: Apache-2.0
"""Runs every check of the source tree, shows what each says, and ends with "N passed, N failed"."""

import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent


def undefined_symbols():
    """Functions of ours that the extension calls but nobody defines; the dynamic linker would find out only at the call."""
    library = ROOT / "python" / "torch_tpu" / "_C.so"
    listing = subprocess.run(["nm", "-D", "-C", "--undefined-only", str(library)], capture_output=True, text=True)
    if listing.returncode:
        print(listing.stderr.strip())
        return 1
    names = [line.split(maxsplit=1)[1] for line in listing.stdout.splitlines() if " tt_" in line or " tt::" in line]
    print("\n".join(f"_C.so: undefined: {name}" for name in names) if names else "symbols: none of ours is undefined in _C.so")
    return 1 if names else 0


def script(*command):
    def run():
        return subprocess.run([sys.executable, *command], cwd=ROOT).returncode

    return run


def main():
    checks = [script("tools/check_layers.py"), script("tools/check_sizes.py"), script("tools/fmt.py", "--check"), undefined_symbols]
    # Tables that are generated: each tool says with --check whether its file is up to date.
    checks += [script(str(path), "--check") for path in sorted((ROOT / "tools").glob("gen_*.py"))]
    failed = 0
    for check in checks:
        sys.stdout.flush()
        failed += check() != 0
    print(f"{len(checks) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
