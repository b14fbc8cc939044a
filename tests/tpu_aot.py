# SPDX-License-Identifier: Apache-2.0
"""Compiles the programs of PyTorch's operator database for TPUs that are not here, with libtpu; nothing is run.

    ./dev test tpu-aot                            one f32 and one bf16 sample of every op, for v5e:2x2 and tpu7x:2x2x1
    python tests/tpu_aot.py --only softmax,mm --topologies v5e:2x2

The programs come from tests/opdb.py on the CPU plugin (TORCH_TPU_DUMP); one text an overload and dtype is compiled. What was compiled is remembered
in --cache, so a second run does only what is new. Programs that libtpu refuses stand in tests/tpu_aot_expected.txt, `overload: reason`.
The last line is "N passed, N failed"; without libtpu the whole run is skipped with that reason."""
import argparse
import ctypes
import hashlib
import importlib.util
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
EXPECTED = HERE / "tpu_aot_expected.txt"


def plugin():
    spec = importlib.util.find_spec("libtpu")
    return os.path.join(spec.submodule_search_locations[0], "libtpu.so") if spec else None


class Compiler:
    """tt_program_analyze of the C library, by its C interface."""

    def __init__(self, path):
        self.library = ctypes.CDLL(str(HERE.parent / "build" / "dev" / "libtt.so"))
        self.library.tt_program_analyze.restype = ctypes.c_void_p
        self.library.tt_program_analyze.argtypes = [ctypes.c_char_p, ctypes.c_char_p, ctypes.c_char_p, ctypes.c_void_p, ctypes.c_void_p,
                                                    ctypes.c_void_p]
        self.library.tt_status_text.restype = ctypes.c_char_p
        self.library.tt_status_text.argtypes = [ctypes.c_void_p]
        self.library.tt_status_free.argtypes = [ctypes.c_void_p]
        self.path = path.encode()
        self.report = ctypes.create_string_buffer(256)

    def compile(self, topology, text):
        """Why it does not compile, or ""."""
        status = self.library.tt_program_analyze(self.path, topology.encode(), text.encode(), self.report, None, None)
        if not status:
            return ""
        why = self.library.tt_status_text(status).decode(errors="replace")
        self.library.tt_status_free(status)
        return " ".join(why.split())


def dump(only, folder):
    env = dict(os.environ, TORCH_TPU_DUMP=folder, TORCH_TPU_CACHE_DIR="none")
    command = [sys.executable, str(HERE / "opdb.py"), "--limit", "1", "--dtypes", "float32,bfloat16", "--kinds", "forward,grad"]
    subprocess.run(command + (["--only", only] if only else []), env=env, stdout=subprocess.DEVNULL, check=False)


def chosen(folder):
    """One program an overload and set of dtypes."""
    found = {}
    for path in sorted(pathlib.Path(folder).glob("*.mlir")):
        text = path.read_text()
        main = re.search(r"@main\((.*?)\) ->", text)
        dtypes = tuple(sorted(set(re.findall(r"x?((?:b?f|i|ui)\d+\w*|complex<f\d+>)>", main.group(1) if main else ""))))
        found.setdefault((path.name.split(".")[0], dtypes), text)
    return found


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--only", default="")
    ap.add_argument("--topologies", default="v5e:2x2,tpu7x:2x2x1")
    ap.add_argument("--dump", help="folder of programs already dumped")
    ap.add_argument("--cache", default=str(HERE.parent / "build" / "tpu_aot.json"))
    args = ap.parse_args()
    path = plugin()
    if path is None:
        print("libtpu is not installed (pip install --no-deps libtpu)\n0 passed, 0 failed, 1 skipped")
        return 0
    with tempfile.TemporaryDirectory() as fresh:
        folder = args.dump or fresh
        if not args.dump:
            dump(args.only, folder)
        programs = chosen(folder)
    cache_file = pathlib.Path(args.cache)
    cache = json.loads(cache_file.read_text()) if cache_file.exists() else {}
    listed = dict(line.split(":", 1) for line in EXPECTED.read_text().splitlines() if line and line[0] != "#") if EXPECTED.exists() else {}
    compiler, passed, failed = Compiler(path), 0, 0
    for (name, dtypes), text in programs.items():
        for topology in args.topologies.split(","):
            key = hashlib.sha256(f"{topology}|{text}".encode()).hexdigest()
            if key not in cache:
                cache[key] = compiler.compile(topology, text)
                cache_file.parent.mkdir(exist_ok=True)
                cache_file.write_text(json.dumps(cache))
            why = cache[key]
            if why and name not in listed:
                failed += 1
                print(f"FAIL {name} {','.join(dtypes)} {topology}: {why[:300]}", flush=True)
            else:
                passed += 1
    print(f"{passed} passed, {failed} failed")
    return failed != 0


if __name__ == "__main__":
    sys.exit(main())
