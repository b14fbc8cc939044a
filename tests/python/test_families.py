# SPDX-License-Identifier: Apache-2.0
"""Every model family on the device, strict and in float32: a training step, greedy text, files; and one family in every mode.
`./dev test --full` runs every family in every mode and dtype (family_checks.py)."""

import families
import family_checks
import pytest
import torch
import transformers

transformers.utils.logging.set_verbosity_error()


@pytest.mark.parametrize("name", families.FAMILIES)
def test_a_training_step_is_that_of_the_cpu(name):
    family_checks.check_step(name, "strict", torch.float32)


@pytest.mark.parametrize("cache", families.CACHES)
@pytest.mark.parametrize("name", [name for name, family in families.FAMILIES.items() if family.prompt])
def test_greedy_text_is_that_of_the_cpu(name, cache):
    family_checks.check_generate(name, "strict", torch.float32, cache, 1)


@pytest.mark.parametrize("name", families.FAMILIES)
def test_files_keep_every_bit(name):
    family_checks.check_files(name)


@pytest.mark.parametrize("mode", ["fused", "compiled"])
@pytest.mark.parametrize("name", ["llama", "bert", "unet2d"])
def test_the_other_modes(name, mode):
    family_checks.check_step(name, mode, torch.float32)


def test_a_second_text_of_a_compiled_model_compiles_nothing():
    name = "llama"
    model = families.build(name).to("tpu")
    inputs = families.inputs_of(name, "tpu")
    want = families.generate(name, families.build(name), families.inputs_of(name), cache="static", new_tokens=8)
    assert families.generate(name, model, inputs, cache="static", new_tokens=8).tolist() == want.tolist()
    before = torch.tpu.stats()
    families.generate(name, model, inputs, cache="static", new_tokens=8)
    after = torch.tpu.stats()
    assert after["compiled"] == before["compiled"]
