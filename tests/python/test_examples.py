# SPDX-License-Identifier: Apache-2.0
"""Each example script at a small size, on the device and on the CPU: the same output, nothing on the CPU."""

import importlib.util
import pathlib
import re

import pytest
import torch

ROOT = pathlib.Path(__file__).resolve().parents[2]


@pytest.fixture
def run(monkeypatch, capsys):
    def run(name, *arguments):
        spec = importlib.util.spec_from_file_location(name, ROOT / "examples" / f"{name}.py")
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        monkeypatch.setattr("sys.argv", [name, *arguments])
        capsys.readouterr()
        before = dict(torch.tpu.fallbacks())
        module.main()
        assert torch.tpu.fallbacks() == before
        return capsys.readouterr().out

    return run


def numbers(text):
    return [float(number) for number in re.findall(r"-?\d+\.\d+", text)]


def test_embed(run):
    got, want = run("embed"), run("embed", "--device", "cpu")
    assert got == want and got.splitlines()[1].endswith("The bakery on the corner opens at six in the morning.")


def test_classify(run):
    got, want = run("classify"), run("classify", "--device", "cpu")
    assert got.startswith("Loaded") and got.replace("tpu:", "cpu:") == want


def test_lora(run, tmp_path):
    options = ("--steps", "2", "--length", "16")
    got = run("lora", *options, "--save", str(tmp_path / "adapter"))
    want = run("lora", *options, "--device", "cpu")
    losses = numbers(got)[-2:]
    assert losses == pytest.approx(numbers(want)[-2:], abs=2e-4) and losses[1] < losses[0]
    assert (tmp_path / "adapter" / "adapter_model.safetensors").stat().st_size > 10000


def test_whisper(run):
    options = ("--seconds", "1", "--max-new-tokens", "6")
    got, want = run("whisper", *options), run("whisper", *options, "--device", "cpu")
    assert got.splitlines()[0] == want.splitlines()[0] and got.startswith("tokens: ")


@pytest.mark.parametrize("kind", ["unet", "dit"])
def test_generate_image(run, tmp_path, kind):
    from PIL import Image

    pictures = []
    for device in ("tpu", "cpu"):
        path = tmp_path / f"{device}.png"
        run("generate_image", "--kind", kind, "--size", "16", "--steps", "3", "--out", str(path), "--device", device)
        pictures.append(torch.tensor(list(Image.open(path).convert("RGB").tobytes())))
    assert (pictures[0] - pictures[1]).abs().max() <= 1 and pictures[0].float().std() > 1
