# SPDX-License-Identifier: Apache-2.0
"""The checks of the source tree find what they are there to find."""

import pathlib
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tools"), str(ROOT / "bench")]

import bench  # noqa: E402
import check_layers  # noqa: E402
import check_sizes  # noqa: E402


@pytest.mark.parametrize(
    "place, local, name",
    [
        ("src/base", True, "pjrt/pjrt.h"),
        ("src/hlo", True, "ops/op.h"),
        ("src/hlo", True, "tt/call.h"),
        ("src/ops", True, "run/device.h"),
        ("src/run", False, "pjrt_c_api.h"),
        ("src/run", False, "ATen/ATen.h"),
        ("src/base", True, "status_private.h"),
        ("shim", True, "run/device.h"),
        ("examples/c", True, "base/mem.h"),
        ("include/tt", True, "base/mem.h"),
    ],
)
def test_an_include_that_goes_upwards_is_found(place, local, name):
    assert check_layers.complaint(place, local, name)


@pytest.mark.parametrize(
    "place, local, name",
    [
        ("src/run", True, "lazy/tensor.h"),
        ("src/ops", True, "tt/hlo.h"),
        ("src/pjrt", False, "pjrt_c_api.h"),
        ("src/base", False, "stdio.h"),
        ("shim", False, "ATen/core/Tensor.h"),
        ("shim", True, "tt/call.h"),
        ("shim", True, "shim.h"),
    ],
)
def test_an_include_that_goes_downwards_is_fine(place, local, name):
    assert check_layers.complaint(place, local, name) is None


@pytest.fixture
def tree(tmp_path, monkeypatch):
    monkeypatch.setattr(check_layers, "ROOT", tmp_path)
    monkeypatch.setattr(check_sizes, "ROOT", tmp_path)
    (tmp_path / "CMakeLists.txt").write_text("project(x)\n")

    def write(name, text):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    return write


def test_a_bad_include_is_reported_with_its_line(tree, capsys):
    tree("src/hlo/graph.c", '// SPDX-License-Identifier: Apache-2.0\n#include "run/device.h"\n')
    assert check_layers.main() == 1
    assert "src/hlo/graph.c:2" in capsys.readouterr().out


def test_a_room_outside_the_table_is_reported(tree, capsys):
    tree("src/attic/old.c", "// SPDX-License-Identifier: Apache-2.0\n")
    assert check_layers.main() == 1
    assert "src/attic" in capsys.readouterr().out


def test_a_long_file_a_missing_licence_and_too_much_cpp_are_reported(tree, capsys):
    tree("src/base/long.c", "// SPDX-License-Identifier: Apache-2.0\n" + "\n" * 600)
    tree("src/base/bare.c", "int x;\n")
    tree("shim/much.cpp", "// SPDX-License-Identifier: Apache-2.0\n" + "\n" * 400)
    assert check_sizes.main() == 1
    text = capsys.readouterr().out
    assert "src/base/long.c: 601 lines" in text
    assert "src/base/bare.c: expected an SPDX" in text
    assert "expected at least 85%" in text


def test_a_tidy_tree_passes(tree):
    tree("src/base/mem.c", '// SPDX-License-Identifier: Apache-2.0\n#include "base/mem.h"\n')
    assert check_layers.main() == 0
    assert check_sizes.main() == 0


def test_the_bench_table_gives_ratios_and_says_which_targets_are_missed():
    results = {"cpu": {"add": 1.0}, "jax": {"add": 4.0}, "tpu": {"add": 2.5, "new_programs": 3, "growth": "error"}}
    rows = {line.split(" | ")[0].strip("| "): line for line in bench.table(results).splitlines()}
    assert "| 2.50x | 0.62x | 3 and 0.65x JAX | yes |" in rows["`x + y`, 16x16"]
    assert rows["programs made when a number, an offset, a seed changes"].endswith("| 0 | NO |")
    assert rows["resident memory after 100,000 calls, growth"].endswith("| NO |")
