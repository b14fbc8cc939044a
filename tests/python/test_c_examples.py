# SPDX-License-Identifier: Apache-2.0
"""The C programs of examples/c: the public C API without Python or PyTorch."""

import importlib.util
import os
import pathlib
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("TT_BUILD_DIR", ROOT / "build" / "dev"))


def example(name, *arguments, plugin=None):
    program = BUILD / f"example_{name}"
    if not program.exists():
        pytest.skip(f"{program} is not built (./dev build builds it)")
    environment = {key: value for key, value in os.environ.items() if key != "TORCH_TPU_PLUGIN"}
    if plugin is not None:
        environment["TORCH_TPU_PLUGIN"] = str(plugin)
    return subprocess.run([program, *arguments], capture_output=True, text=True, env=environment, timeout=300)


def library(package, name):
    spec = importlib.util.find_spec(package)
    if spec is None:
        pytest.skip(f"{package} is not installed")
    return pathlib.Path(spec.submodule_search_locations[0]) / name


def test_softmax_runs_without_pytorch():
    done = example("softmax", plugin=library("xla_plugins.xla_cpu_pjrt", "xla_cpu_pjrt.so"))
    assert done.returncode == 0, done.stderr
    assert "stablehlo.exponential" in done.stdout
    assert done.stdout.splitlines()[-2:] == ["0.0321 0.0871 0.2369 0.6439", "0.2500 0.2500 0.2500 0.2500"]


def test_no_plugin_says_what_to_install():
    done = example("softmax")
    assert done.returncode == 1
    assert "NOT_FOUND" in done.stderr and "install" in done.stderr and "xla-cpu-pjrt" in done.stderr


def test_a_path_that_is_no_plugin_is_named(tmp_path):
    path = tmp_path / "not_a_plugin.so"
    path.write_text("text")
    done = example("softmax", plugin=path)
    assert done.returncode == 1
    assert str(path) in done.stderr


def test_analysis_without_a_plugin_is_skipped_with_a_reason():
    done = example("tpu7x")
    assert done.returncode == 0
    assert done.stdout.startswith("skipped: ") and "libtpu" in done.stdout


def test_a_layer_compiles_for_a_tpu_that_is_not_here():
    done = example("tpu7x", str(library("libtpu", "libtpu.so")))
    assert done.returncode == 0, done.stderr
    assert "memory of one of 8 devices" in done.stdout  # 4 chips of 2 devices each
    figures = dict(line.rsplit(maxsplit=1) for line in done.stdout.splitlines() if line.startswith("  ") and "," not in line)
    flops = {name.strip(): float(value) for name, value in figures.items()}["flops"]
    assert flops == pytest.approx(2 * 2 * 1024 * 4096 * 16384, rel=0.01)


def test_an_unknown_topology_is_an_error_that_names_it():
    done = example("tpu7x", str(library("libtpu", "libtpu.so")), "tpu99z:1x1")
    assert done.returncode == 1
    assert "tpu99z:1x1" in done.stderr
