# SPDX-License-Identifier: Apache-2.0
"""Measures the device against torch on the CPU and JAX op by op, and prints a table. Each system runs in a process of its
own, one after the other, with the same environment.

    ./dev bench              all of it (minutes)
    ./dev bench --quick      host costs only
    ./dev bench --write      also puts the table into README.md

JAX is measured where BENCH_JAX_PYTHON names an interpreter that has it (default: ../venv-jax/bin/python)."""

import argparse
import datetime
import json
import os
import pathlib
import platform
import re
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent
JAX_PYTHON = os.environ.get("BENCH_JAX_PYTHON", str(ROOT.parent / "venv-jax" / "bin" / "python"))
BEGIN, END = "<!-- bench: written by ./dev bench --write -->", "<!-- /bench -->"

QUICK = ["add", "add_in_place", "times_number", "view", "index", "chain", "new_programs"]
# case, what it is, unit, limit (value, system it is a ratio to or None)
ROWS = [
    ("add", "`x + y`, 16x16", "us", [(3.0, None), (0.65, "jax")]),
    ("add_in_place", "`x.add_(y)`", "us", [(3.5, None)]),
    ("times_number", "`x * 0.3`", "us", [(3.5, None)]),
    ("view", "`x[3:9, 2:7].t() + 1`", "us", [(9.0, None)]),
    ("index", "`x.index_select(0, i)`, 16 of 64 rows, indexes checked", "us", []),
    ("chain", "60 ops in a chain, an op", "us", []),
    ("new_programs", "programs made when a number, an offset, a seed changes", "", [(0, None)]),
    ("growth", "resident memory after 100,000 calls, growth", "MiB", [(2.0, None)]),
    ("prompt_ms", "SmolLM2-135M f32, prompt of 256 tokens", "ms", [(1.0, "cpu")]),
    ("decode_ms", "SmolLM2-135M f32, a token", "ms", []),
    ("first_cold", "chat.py, first token, empty cache", "s", []),
    ("first_warm", "chat.py, first token, warm disk cache", "s", [(2.0, "cpu")]),
    ("compiled_cold", "chat.py, programs compiled, empty cache", "", []),
    ("compiled_warm", "chat.py, programs compiled, second run", "", [(0, None)]),
]


# Whole steps. Targets are ratios of the fused time to another column.
STEP_ROWS = [
    ("small_ops", "60 ops of 16x16, sum, read", {"strict": 0.25, "cpu": 1.0}),
    ("small_gpt", "GPT, 2 layers, d 64, T 16, B 1, AdamW", {"strict": 0.34, "cpu": 0.34}),
    ("mlp", "MLP 256-512-256, batch 32, AdamW", {"plugin": 1.15}),
    ("gpt", "GPT, 4 layers, d 128, T 64, B 4, AdamW", {"plugin": 1.15}),
    ("cnn", "small CNN, forward and backward", {"plugin": 1.15}),
    ("cnn_last", "the same, channels last", {"plugin": 1.15}),
]
COLUMNS = {"cpu": "torch CPU", "jax": "JAX jit, its CPU", "plugin": "JAX jit, our plugin", "strict": "strict", "fused": "fused"}


def measure(name, command, environment):
    print(f"measuring {name} ...", file=sys.stderr, flush=True)
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, env=environment, stdin=subprocess.DEVNULL)
    if done.returncode != 0:
        print(f"{name}: exit status {done.returncode}", file=sys.stderr)
        return {}
    return json.loads(done.stdout.strip().splitlines()[-1])


def chat(device, environment):
    """(seconds to the first token after loading, programs compiled) of one run of the example."""
    command = [sys.executable, str(ROOT / "examples" / "chat.py"), "--device", device, "--max-new-tokens", "16"]
    print(f"measuring chat.py on {device} ...", file=sys.stderr, flush=True)
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, env=environment, stdin=subprocess.DEVNULL)
    first = re.search(r"first token after ([0-9.]+) s", done.stdout)
    compiled = re.search(r"programs: (\d+) compiled", done.stdout)
    if done.returncode != 0 or not first:
        print(f"chat.py on {device}: exit status {done.returncode}", file=sys.stderr)
        return "error", "error"
    return float(first.group(1)), int(compiled.group(1)) if compiled else None


def measure_all(quick, environment):
    cases = QUICK if quick else []
    torch_cases = str(HERE / "torch_cases.py")
    results = {
        "cpu": measure("torch CPU", [sys.executable, torch_cases, "cpu", *cases], environment),
        "tpu": measure("torch_tpu", [sys.executable, torch_cases, "tpu", *cases], environment),
    }
    if os.path.exists(JAX_PYTHON):
        results["jax"] = measure("JAX", [JAX_PYTHON, str(HERE / "jax_cases.py")], environment)
    if not quick:
        results["cpu"]["first_warm"], _ = chat("cpu", environment)
        with tempfile.TemporaryDirectory() as folder:  # a folder that no run has filled yet
            fresh = dict(environment, TORCH_TPU_CACHE_DIR=folder)
            results["tpu"]["first_cold"], results["tpu"]["compiled_cold"] = chat("tpu", fresh)
            results["tpu"]["first_warm"], results["tpu"]["compiled_warm"] = chat("tpu", fresh)
    return results


def measure_steps(environment):
    cases = str(HERE / "train_cases.py")
    results = {mode: measure(f"steps, {mode}", [sys.executable, cases, mode], environment) for mode in ("cpu", "strict", "fused")}
    if os.path.exists(JAX_PYTHON):
        command = [JAX_PYTHON, str(HERE / "jax_train.py")]
        results["jax"] = measure("steps, JAX", command, dict(environment, JAX_PLATFORMS="cpu"))
        path = subprocess.run([sys.executable, "-c", "import torch; print(torch.tpu._C.plugin_path())"],
                              env=environment, capture_output=True, text=True).stdout.strip()
        ours = dict(environment, JAX_PLATFORMS="ours", PJRT_NAMES_AND_LIBRARY_PATHS=f"ours:{path}")
        results["plugin"] = measure("steps, JAX on our plugin", command, ours)
    return results


def step_table(results):
    shown = [column for column in COLUMNS if results.get(column)]
    lines = ["| a step, its result read, ms | " + " | ".join(COLUMNS[c] for c in shown) + " | fused, target at most | met |"]
    lines.append("|---" * (len(shown) + 3) + "|")
    for case, text, targets in STEP_ROWS:
        fused = results["fused"].get(case)
        met, wanted = True, []
        for other, ratio in targets.items():
            base = results.get(other, {}).get(case)
            wanted.append(f"{ratio:g}x {COLUMNS[other]}")
            if isinstance(base, (int, float)):
                met = met and isinstance(fused, (int, float)) and fused <= ratio * base
        cells = [text, *(number(results[c].get(case)) for c in shown), " and ".join(wanted), "yes" if met else "NO"]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def number(value):
    if value is None:
        return "-"
    if isinstance(value, str):
        return value
    return str(value) if isinstance(value, int) else f"{value:.2f}" if value < 100 else f"{value:.0f}"


def verdict(limits, row, case):
    """The targets as text, and whether all are met."""
    texts, met = [], True
    for limit, other in limits:
        value = row["tpu"].get(case)
        base = row.get(other, {}).get(case) if other else None
        name = {"cpu": "CPU", "jax": "JAX"}.get(other)
        texts.append(f"{limit:g}x {name}" if other else f"{limit:g}")
        if other and not isinstance(base, (int, float)):
            continue  # not measured here
        met = met and isinstance(value, (int, float)) and value <= (limit * base if other else limit)
    return (" and ".join(texts), met) if texts else ("", True)


def table(results):
    lines = ["| what | unit | torch CPU | JAX | torch_tpu | to CPU | to JAX | target at most | met |", "|---|---|---|---|---|---|---|---|---|"]
    for case, text, unit, limits in ROWS:
        if case not in results["tpu"]:
            continue
        ours = results["tpu"][case]
        ratios = []
        for other in ("cpu", "jax"):
            base = results.get(other, {}).get(case)
            fits = unit in ("us", "ms", "s") and isinstance(base, (int, float)) and isinstance(ours, (int, float)) and base > 0
            ratios.append(f"{ours / base:.2f}x" if fits else "")
        target, met = verdict(limits, results, case)
        cells = [text, unit, number(results["cpu"].get(case)), number(results.get("jax", {}).get(case)), number(ours), *ratios]
        lines.append("| " + " | ".join(cells + [target, ("yes" if met else "NO") if target else ""]) + " |")
    return "\n".join(lines)


def machine():
    model = platform.processor() or platform.machine()
    with open("/proc/cpuinfo") as file:
        for line in file:
            if line.startswith("model name"):
                model = line.split(":", 1)[1].strip()
                break
    version = subprocess.run([sys.executable, "-c", "import torch; print(torch.__version__)"], capture_output=True, text=True)
    return f"{model}, {len(os.sched_getaffinity(0))} cores, torch {version.stdout.strip()}, {datetime.date.today()}"


def write_readme(text):
    path = ROOT / "README.md"
    readme = path.read_text()
    if BEGIN not in readme or END not in readme:
        sys.exit(f"README.md: expected the markers {BEGIN} and {END}")
    before, rest = readme.split(BEGIN, 1)
    path.write_text(before + BEGIN + "\n" + text + "\n" + END + rest.split(END, 1)[1])


def main():
    parser = argparse.ArgumentParser(description="Measures the device against torch on the CPU and JAX.")
    parser.add_argument("--quick", action="store_true", help="host costs only")
    parser.add_argument("--write", action="store_true", help="put the table into README.md")
    arguments = parser.parse_args()
    if arguments.quick and arguments.write:
        parser.error("the README's table is of a whole run: --write does not go with --quick")
    with tempfile.TemporaryDirectory() as folder:
        environment = dict(os.environ, HF_HUB_OFFLINE="1", TOKENIZERS_PARALLELISM="false", TORCH_TPU_CACHE_DIR=folder)
        results = measure_all(arguments.quick, environment)
        steps = measure_steps(environment)
    text = f"Machine: {machine()}. Medians of one run.\n\n{table(results)}\n\n{step_table(steps)}"
    print(text)
    if arguments.write:
        write_readme(text)
    return 0 if results["tpu"] and "error" not in results["tpu"].values() else 1


if __name__ == "__main__":
    sys.exit(main())
