# SPDX-License-Identifier: Apache-2.0
"""Compiles the programs of every model family for TPUs that are not here, with libtpu: those of a training step (forward, backward, optimizer) and
of a decode step with a static cache, tiny configurations, float32 and bfloat16.

    ./dev test tpu-aot                            after the programs of the operators
    python tests/tpu_aot_models.py --families llama,vit --topologies v5e:2x2 --dtypes f32

torch.compile captures the programs on the CPU plugin (TORCH_TPU_DUMP). What was compiled is remembered in --cache. The last line is
"N passed, N failed"; without libtpu the whole run is skipped with that reason."""
import argparse
import hashlib
import json
import os
import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE / "python")]

import tpu_aot


def training_step(families, name, dtype):
    import torch

    family = families.FAMILIES[name]
    model = families.build(name, dtype).to("tpu").train(family.dropout_free)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    inputs = families.inputs_of(name, "tpu", dtype)
    forward = torch.compile(model, backend="tpu")
    family.loss(forward(**inputs), inputs).backward()
    torch.compile(optimizer.step, backend="tpu")()


def decode_step(families, name, dtype):
    model = families.build(name, dtype).to("tpu")
    families.generate(name, model, families.inputs_of(name, "tpu", dtype), cache="static", new_tokens=3)


def capture(folder, names, dtypes):
    """Fills a folder with FAMILY.DTYPE.WHAT.N.mlir, the text of each compiled graph."""
    import families
    import family_checks
    import torch
    import transformers

    transformers.utils.logging.set_verbosity_error()
    dumps = pathlib.Path(os.environ["TORCH_TPU_DUMP"])
    seen = set()
    for name in names:
        for dtype in dtypes:
            for what, run in (("train", training_step), ("decode", decode_step)):
                if what == "decode" and not families.FAMILIES[name].prompt:
                    continue
                torch._dynamo.reset()
                try:
                    run(families, name, family_checks.DTYPES[dtype])
                    torch.tpu.synchronize()
                except Exception as error:
                    (folder / f"{name}.{dtype}.{what}.error").write_text(f"{type(error).__name__}: {error}")
                    continue
                found = [path for path in sorted(dumps.glob("graph_*.mlir")) if path not in seen]
                seen.update(found)
                for number, path in enumerate(found):
                    (folder / f"{name}.{dtype}.{what}.{number}.mlir").write_text(path.read_text())


def compile_apart(plugin, topology, text):
    """Why it does not compile, or "". In a process of its own: a check that fails inside libtpu ends the process."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        with os.fdopen(writer, "w") as pipe:
            pipe.write("done" + tpu_aot.Compiler(plugin).compile(topology, text))
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as pipe:
        answer = pipe.read()
    status = os.waitpid(child, 0)[1]
    return answer.removeprefix("done") if answer.startswith("done") else f"libtpu ended its process, status {status}"


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--families", default="")
    ap.add_argument("--dtypes", default="f32,bf16")
    ap.add_argument("--topologies", default="v5e:2x2,tpu7x:2x2x1")
    ap.add_argument("--cache", default=str(HERE.parent / "build" / "tpu_aot_models.json"))
    ap.add_argument("--capture", type=pathlib.Path, help=argparse.SUPPRESS)
    args = ap.parse_args()
    import families

    names = args.families.split(",") if args.families else list(families.FAMILIES)
    if args.capture:
        capture(args.capture, names, args.dtypes.split(","))
        return 0
    plugin = tpu_aot.plugin()
    if plugin is None:
        print("libtpu is not installed (pip install --no-deps libtpu)\n0 passed, 0 failed, 1 skipped")
        return 0
    with tempfile.TemporaryDirectory() as fresh:
        folder = pathlib.Path(fresh)
        (folder / "dumps").mkdir()
        env = dict(os.environ, TORCH_TPU_DUMP=str(folder / "dumps"), TORCH_TPU_CACHE_DIR="none")
        command = [sys.executable, __file__, "--capture", fresh, "--families", ",".join(names), "--dtypes", args.dtypes]
        subprocess.run(command, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
        programs = {path.name: path.read_text() for path in sorted(folder.iterdir()) if path.is_file()}
    cache_file = pathlib.Path(args.cache)
    cache = json.loads(cache_file.read_text()) if cache_file.exists() else {}
    passed = failed = 0
    for name in names:
        for dtype in args.dtypes.split(","):
            for what in ("train", "decode") if families.FAMILIES[name].prompt else ("train",):
                if not any(file.startswith(f"{name}.{dtype}.{what}.") for file in programs):
                    failed += 1
                    print(f"FAIL {name}.{dtype}.{what}: no program was captured", flush=True)
    for file, text in programs.items():
        if file.endswith(".error"):
            failed += 1
            print(f"FAIL {file}: {' '.join(text.split())[:300]}", flush=True)
            continue
        for topology in args.topologies.split(","):
            key = hashlib.sha256(f"{topology}|{text}".encode()).hexdigest()
            if key not in cache:
                cache[key] = compile_apart(plugin, topology, text)
                cache_file.parent.mkdir(exist_ok=True)
                cache_file.write_text(json.dumps(cache))
            if cache[key]:
                failed += 1
                print(f"FAIL {file} {topology}: {cache[key][:300]}", flush=True)
            else:
                passed += 1
    print(f"{passed} passed, {failed} failed")
    return failed != 0


if __name__ == "__main__":
    sys.exit(main())
