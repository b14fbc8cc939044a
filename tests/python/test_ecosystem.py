# SPDX-License-Identifier: Apache-2.0
"""What training code around a model uses: Trainer and accelerate, PEFT, kernels' detection, autocast, GradScaler, checkpointing, DataLoader."""

import copy
import os
import subprocess
import sys

import families
import pytest
import torch
import transformers

transformers.utils.logging.set_verbosity_error()
DEVICES = ("cpu", "tpu")


@pytest.fixture(autouse=True)
def nothing_on_the_cpu():
    before = dict(torch.tpu.fallbacks())
    yield
    assert torch.tpu.fallbacks() == before


def both(name, prepare=lambda model: model):
    """(model, inputs) of a family, prepared once, on each device."""
    model = prepare(families.build(name))
    return [(copy.deepcopy(model).to(device), families.inputs_of(name, device)) for device in DEVICES]


def gradients(model):
    return {key: value.grad.detach().cpu() for key, value in model.named_parameters() if value.grad is not None}


def assert_same(got, want, **options):
    assert got.keys() == want.keys()
    for key in want:
        torch.testing.assert_close(got[key], want[key], msg=lambda text: f"{key}: {text}", **options)


TRAINER = """
import json, sys, tempfile
sys.path.insert(0, {folder!r})
import families, torch, transformers
transformers.utils.logging.set_verbosity_error()
given = families.tokens()
rows = [{{key: value[i % 2] for key, value in given.items()}} for i in range(4)]
with tempfile.TemporaryDirectory() as folder:
    arguments = transformers.TrainingArguments(folder, max_steps=2, per_device_train_batch_size=2, learning_rate=1e-2, adam_epsilon=1e-2,
        logging_steps=1, save_steps=2, report_to="none", disable_tqdm=True, seed=0, dataloader_pin_memory={pin}, use_cpu={cpu})
    trainer = transformers.Trainer(families.build("llama"), arguments, train_dataset=rows)
    trainer.train()
    losses = [row["loss"] for row in trainer.state.log_history if "loss" in row]
    norms = [row["grad_norm"] for row in trainer.state.log_history if "grad_norm" in row]
    device = next(trainer.model.parameters()).device.type
    fallbacks = dict(torch.tpu.fallbacks())
print("RESULT" + json.dumps([device, losses, [float(n) for n in norms], fallbacks]))
"""


def trainer(device):
    code = TRAINER.format(folder=os.path.dirname(os.path.abspath(__file__)), pin=device == "tpu", cpu=device == "cpu")
    env = dict(os.environ, ACCELERATE_TORCH_DEVICE=device)
    out = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, timeout=300)
    lines = [line for line in out.stdout.splitlines() if line.startswith("RESULT")]
    assert lines, out.stderr[-2000:]
    import json

    return json.loads(lines[0].removeprefix("RESULT"))


def test_the_trainer_takes_two_steps_as_on_the_cpu():
    got, want = trainer("tpu"), trainer("cpu")
    assert got[0] == "tpu" and want[0] == "cpu" and got[3] == {} and len(want[1]) == 2
    assert got[1] == pytest.approx(want[1], rel=1e-4) and got[2] == pytest.approx(want[2], rel=1e-4)


def test_lora_trains_the_adapter_only():
    import peft

    config = peft.LoraConfig(r=4, lora_alpha=8, target_modules=["q_proj", "v_proj"], task_type="CAUSAL_LM", init_lora_weights=False)
    results = []
    for model, inputs in both("llama", lambda model: peft.get_peft_model(model, config)):
        optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=1e-2, eps=1e-2)
        model(**inputs).loss.backward()
        found = gradients(model)
        assert found and all("lora_" in key for key in found)
        optimizer.step()
        merged = model.merge_and_unload()
        results.append({**found, **{key: value.cpu() for key, value in merged.state_dict().items()}})
    assert_same(results[1], results[0])


def test_an_adapter_is_loaded_onto_the_device(tmp_path):
    import peft

    config = peft.LoraConfig(r=4, target_modules=["q_proj"], task_type="CAUSAL_LM", init_lora_weights=False)
    (cpu, given), _ = both("llama", lambda model: peft.get_peft_model(model, config))
    cpu.save_pretrained(tmp_path)
    model = peft.PeftModel.from_pretrained(families.build("llama").to("tpu"), tmp_path)
    inputs = families.inputs_of("llama", "tpu")
    assert {value.device.type for value in model.parameters()} == {"tpu"}
    torch.testing.assert_close(model(**inputs).logits.cpu(), cpu(**given).logits)


def test_transformers_takes_kernels_for_the_device():
    from transformers.utils import kernel_config

    assert hasattr(torch.backends, "tpu")  # what the kernels package asks for
    assert "tpu" in kernel_config.__loader__.get_source(kernel_config.__name__)


@pytest.mark.parametrize("name", ["llama", "vit"])
def test_a_step_under_autocast(name):
    results = []
    for model, inputs in both(name):
        with torch.autocast(inputs["labels"].device.type, dtype=torch.bfloat16):
            outputs = model(**inputs)
        outputs.loss.backward()
        results.append({"loss": outputs.loss.detach().cpu().float(), **gradients(model)})
    exact = copy.deepcopy(families.build(name)).double()
    given = families.inputs_of(name, dtype=torch.float64)
    exact(**given).loss.backward()
    assert results[0].keys() == results[1].keys()
    for key, value in gradients(exact).items():
        error = [(result[key].double() - value).pow(2).mean().sqrt().item() for result in results]
        assert results[1][key].dtype == torch.float32 and error[1] <= 2 * error[0] + 1e-6, key
    torch.testing.assert_close(results[1]["loss"], results[0]["loss"], rtol=1.6e-2, atol=1e-5)


def test_the_gradient_scaler_skips_a_step_that_overflows():
    for model, inputs in both("bert"):
        device = inputs["labels"].device.type
        scaler = torch.amp.GradScaler(device, init_scale=2.0**8, growth_interval=1)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        weight = model.bert.embeddings.word_embeddings.weight
        scaler.scale(model(**inputs).loss).backward()
        scaler.unscale_(optimizer)
        norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        before = weight.detach().clone()
        scaler.step(optimizer)
        scaler.update()
        assert scaler.get_scale() == 2.0**9 and not torch.equal(weight, before) and norm.isfinite()
        optimizer.zero_grad()
        scaler.scale(model(**inputs).loss).backward()
        weight.grad[0, 0] = float("inf")
        before = weight.detach().clone()
        scaler.step(optimizer)
        scaler.update()
        assert scaler.get_scale() == 2.0**8 and torch.equal(weight, before)


@pytest.mark.parametrize("reentrant", [False, True])
def test_gradient_checkpointing_changes_no_gradient(reentrant):
    results = []
    for model, inputs in both("llama"):
        model.train()
        model.gradient_checkpointing_enable({"use_reentrant": reentrant})
        model(**inputs, use_cache=False).loss.backward()
        results.append(gradients(model))
    assert_same(results[1], results[0])


def test_checkpointing_repeats_random_numbers():
    """A dropout inside a checkpoint draws the same numbers when it runs again for the backward."""
    from torch.utils.checkpoint import checkpoint

    x = torch.ones(512, device="tpu", requires_grad=True)
    torch.tpu.manual_seed(3)
    y = checkpoint(lambda t: torch.nn.functional.dropout(t, 0.5), x, use_reentrant=False)
    y.sum().backward()
    assert torch.equal(x.grad, y.detach()) and 0 < int((y == 0).sum()) < 512


class Rows(torch.utils.data.Dataset):
    def __len__(self):
        return 6

    def __getitem__(self, index):
        return torch.full((3,), float(index)), index


@pytest.mark.parametrize("workers", [0, 2])
def test_batches_from_a_data_loader(workers):
    loader = torch.utils.data.DataLoader(Rows(), batch_size=2, num_workers=workers, pin_memory=True)
    seen = []
    for values, indices in loader:
        assert values.is_pinned() and values.device.type == "cpu"
        seen.append((values.to("tpu", non_blocking=True).sum(1), indices.to("tpu", non_blocking=True)))
    assert [(v.tolist(), i.tolist()) for v, i in seen] == [([0.0, 3.0], [0, 1]), ([6.0, 9.0], [2, 3]), ([12.0, 15.0], [4, 5])]
