# SPDX-License-Identifier: Apache-2.0
"""Real models with real weights, unmodified: SmolLM2 generates and trains, MiniLM embeds; equal to the CPU, nothing on the CPU."""

import copy
import importlib.util
import os
import pathlib

os.environ.setdefault("HF_HUB_OFFLINE", "1")

import family_checks
import pytest
import torch
import transformers

ROOT = pathlib.Path(__file__).resolve().parents[2]
GGUF = "SmolLM2-135M-Instruct.Q4_1.gguf"


def load_example(name):
    spec = importlib.util.spec_from_file_location(name, ROOT / "examples" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def smollm2():
    folder = load_example("finetune").weights()
    transformers.utils.logging.disable_progress_bar()
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder, gguf_file=GGUF)
    model = transformers.AutoModelForCausalLM.from_pretrained(folder, gguf_file=GGUF, dtype=torch.float32).eval()
    return tokenizer, model, copy.deepcopy(model).to("tpu")


@pytest.fixture(autouse=True)
def nothing_on_the_cpu():
    before = dict(torch.tpu.fallbacks())
    yield
    assert {k: n for k, n in torch.tpu.fallbacks().items() if before.get(k) != n} == {}


def greedy(model, tokenizer, prompt, **options):
    inputs = tokenizer(prompt, return_tensors="pt").to(model.device)
    out = model.generate(**inputs, max_new_tokens=12, do_sample=False, pad_token_id=0, disable_compile=True, **options)
    return out.cpu().tolist()


@pytest.mark.parametrize("cache", ["dynamic", "static"])
def test_greedy_text_is_that_of_the_cpu(smollm2, cache):
    tokenizer, cpu, tpu = smollm2
    prompt = "The lighthouse keeper climbed the stairs and"
    got = greedy(tpu, tokenizer, prompt, cache_implementation=cache)
    assert got == greedy(cpu, tokenizer, prompt, cache_implementation=cache)
    before = torch.tpu.stats()
    assert greedy(tpu, tokenizer, prompt, cache_implementation=cache) == got
    after = torch.tpu.stats()
    assert after["compiled"] == before["compiled"] and after["loaded"] == before["loaded"]


def test_greedy_text_in_fused_mode(smollm2):
    tokenizer, cpu, tpu = smollm2
    prompt = "In the morning the sea was"
    with torch.tpu.eager_mode("fused"):
        got = greedy(tpu, tokenizer, prompt, cache_implementation="static")
    assert got == greedy(cpu, tokenizer, prompt, cache_implementation="static")


def test_fine_tuning_follows_the_cpu(smollm2):
    example = load_example("finetune")
    tokenizer, cpu, tpu = smollm2
    tokens = tokenizer(example.STORY.read_text(), return_tensors="pt")["input_ids"][0]
    arguments = type("Arguments", (), dict(steps=3, batch=1, length=32, learning_rate=1e-4, clip=1.0, seed=0))
    losses = [example.train(copy.deepcopy(model).train(), tokens, model.device, arguments) for model in (cpu, tpu)]
    assert losses[1] == pytest.approx(losses[0], abs=1e-3) and losses[0][-1] != losses[0][0]


def test_sentence_embeddings_are_those_of_the_cpu():
    example = load_example("embed")
    tokenizer = transformers.AutoTokenizer.from_pretrained(example.weights())
    model = transformers.AutoModel.from_pretrained(example.weights(), dtype=torch.float32).eval()
    want = example.embed(model, tokenizer, example.SENTENCES, torch.device("cpu"))
    got = example.embed(model.to("tpu"), tokenizer, example.SENTENCES, torch.device("tpu"))
    torch.testing.assert_close(got.cpu(), want, rtol=0, atol=1e-4)


def class_and_gradient(model, run, pixels):
    model.zero_grad()
    scores = run(pixels)
    scores[:, 722].sum().backward()
    return {"scores": scores.detach().cpu(), "gradient": model._conv_stem.weight.grad.cpu()}


@pytest.mark.parametrize("mode", ["strict", "fused", "compiled"])
def test_image_classes_are_those_of_the_cpu(mode):
    example = load_example("classify")
    model = example.load()
    pixels = example.pixels(example.generated())
    want = class_and_gradient(model, model, pixels)
    exact = copy.deepcopy(model).double()
    exact = class_and_gradient(exact, exact, pixels.double())
    moved = copy.deepcopy(model).to("tpu")
    with torch.tpu.eager_mode("fused" if mode == "fused" else "strict"):
        got = class_and_gradient(moved, torch.compile(moved, backend="tpu") if mode == "compiled" else moved, pixels.to("tpu"))
    family_checks.assert_as_exact_as_the_cpu(got, want, exact, torch.float32)
    assert got["scores"].argmax().item() == 722
