# SPDX-License-Identifier: Apache-2.0
"""Checks of a model family against the CPU, and a run of all of them.

    .venv/bin/python tests/python/family_checks.py                              every family, mode and dtype; the last line counts
    .venv/bin/python tests/python/family_checks.py --families llama,t5 --modes fused --dtypes bf16
    .venv/bin/python tests/python/family_checks.py --report docs/models.md      also writes the table of what passed"""

import argparse
import contextlib
import os
import pathlib
import sys
import tempfile
import time
import traceback
import warnings

if __name__ == "__main__":  # fused mode: wait for a trace's program, or a short run would never reach it
    os.environ.setdefault("TORCH_TPU_COMPILE_WAIT", "1")

import families
import torch
import transformers

MODES = ("strict", "fused", "compiled")
DTYPES = {"f32": torch.float32, "bf16": torch.bfloat16}


@contextlib.contextmanager
def nothing_on_the_cpu():
    before = dict(torch.tpu.fallbacks())
    yield
    new = {name: count for name, count in torch.tpu.fallbacks().items() if before.get(name) != count}
    assert not new, f"ran on the CPU: {new}"


def in_mode(mode):
    torch._dynamo.reset() if mode == "compiled" else None
    return torch.tpu.eager_mode("fused" if mode == "fused" else "strict")


def error_of(value, exact):
    return (value.double() - exact).pow(2).mean().sqrt().item()


def assert_as_exact_as_the_cpu(got, want, exact, dtype):
    """Equal within PyTorch's tolerances of the dtype, or as near to the result in float64 as the CPU's own result is, since the same model
    rounds at other places: three times its error at most, which is PyTorch's own rule for whole models (torch._dynamo.utils.same)."""
    assert got.keys() == want.keys()
    for key in want:
        if want[key].shape != got[key].shape or want[key].dtype != got[key].dtype:
            raise AssertionError(f"{key}: expected {want[key].dtype} {tuple(want[key].shape)}, got {got[key].dtype} {tuple(got[key].shape)}")
        mine, cpu = error_of(got[key], exact[key]), error_of(want[key], exact[key])
        if mine > 3 * cpu + torch.finfo(dtype).eps * exact[key].abs().max().item():
            torch.testing.assert_close(got[key], want[key], msg=lambda text: f"{key} (error {mine:.2e}, the CPU's {cpu:.2e}): {text}")


def exact_model(name, dtype):
    model = families.build(name, dtype).double()
    if name in families.EXPERTS:
        model.set_experts_implementation("eager")  # grouped products have no float64 on the CPU
    return model


def check_step(name, mode, dtype):
    want = families.train_step(name, families.build(name, dtype), families.inputs_of(name, dtype=dtype))
    exact = families.train_step(name, exact_model(name, dtype), families.inputs_of(name, dtype=torch.float64))
    model = families.build(name, dtype).to("tpu")
    inputs = families.inputs_of(name, "tpu", dtype)
    with nothing_on_the_cpu(), in_mode(mode):
        run = torch.compile(model, backend="tpu") if mode == "compiled" else model
        got = families.train_step(name, run, inputs)
        if mode == "compiled":
            run(**inputs)  # some models note in their configuration, in the first call, what kind of labels they got
            before = torch.tpu.stats()
            run(**inputs)
            after = torch.tpu.stats()
            assert after["launches"] - before["launches"] == 1 and after["compiled"] == before["compiled"], "the forward is not one program"
    assert_as_exact_as_the_cpu(got, want, {key: value.double() for key, value in exact.items()}, dtype)


def check_generate(name, mode, dtype, cache, beams):
    cpu = families.build(name, dtype)
    model = families.build(name, dtype).to("tpu")
    options = {}
    if cache == "static" and mode != "compiled":
        options["disable_compile"] = True  # else transformers compiles by itself
    elif cache == "static" and name in families.SLIDING:
        # The cache counts its length in a Python number; transformers asks for a program for each value of it unless told otherwise.
        options["compile_config"] = transformers.CompileConfig(backend="tpu", mode="default", dynamic=None)
    arguments = dict(cache=cache, beams=beams, return_dict_in_generate=True, output_logits=True, output_scores=True)
    want = families.generate(name, cpu, families.inputs_of(name, dtype=dtype), **arguments)
    if mode == "compiled" and cache == "dynamic":
        model.forward = torch.compile(model.forward, backend="tpu", dynamic=True)
    with nothing_on_the_cpu(), in_mode(mode):
        got = families.generate(name, model, families.inputs_of(name, "tpu", dtype), **arguments, **options)
    tokens = got.sequences.cpu()
    assert tokens.shape == want.sequences.shape
    if dtype == torch.float32:
        assert tokens.tolist() == want.sequences.tolist()
        for mine, cpu_logits in zip(got.logits, want.logits, strict=True):
            torch.testing.assert_close(mine.cpu(), cpu_logits)
    elif beams == 1:
        # A tie in bfloat16 may fall either way. Until the texts part, the logits agree; each token is a largest one of its logits.
        for step, mine in enumerate(got.logits):
            rows = mine.cpu().float()
            taken = tokens[:, tokens.shape[1] - len(got.logits) + step]
            masked = rows.index_fill(1, torch.tensor([2]), float("-inf"))  # the end is forbidden: min_new_tokens
            assert torch.equal(masked.max(-1).values, rows.gather(1, taken[:, None])[:, 0])
        torch.testing.assert_close(got.logits[0].cpu(), want.logits[0], rtol=1.6e-2, atol=2 * torch.finfo(dtype).eps * float(want.logits[0].abs().max()))
    else:
        torch.testing.assert_close(got.sequences_scores.cpu(), want.sequences_scores, rtol=1.6e-2, atol=1e-5)


def check_files(name):
    """state_dict, safetensors and from_pretrained on the device, and back to the CPU, bit for bit."""
    model = families.build(name).eval()
    state = {key: value.clone() for key, value in model.state_dict().items()}
    with tempfile.TemporaryDirectory() as folder, nothing_on_the_cpu():
        moved = families.build(name).to("tpu")
        back = {key: value.cpu() for key, value in moved.state_dict().items()}
        assert back.keys() == state.keys() and all(torch.equal(back[key], state[key]) for key in state)
        moved.save_pretrained(folder)
        assert any(path.suffix == ".safetensors" for path in pathlib.Path(folder).iterdir())
        loaded = type(model).from_pretrained(folder, device_map="tpu")
        assert {value.device.type for value in loaded.parameters()} == {"tpu"}
        again = {key: value.cpu() for key, value in loaded.state_dict().items()}
        assert again.keys() == state.keys() and all(torch.equal(again[key], state[key]) for key in state)
        torch.save(loaded.state_dict(), os.path.join(folder, "state.pt"))
        fresh = type(model)(model.config) if isinstance(model, transformers.PreTrainedModel) else type(model).from_config(model.config)
        fresh.load_state_dict(torch.load(os.path.join(folder, "state.pt"), map_location="cpu"))
        assert all(torch.equal(fresh.state_dict()[key], state[key]) for key in state)


def cases(name, mode, dtype):
    """(what, function) of everything checked for a family in a mode and dtype."""
    family = families.FAMILIES[name]
    yield "step", lambda: check_step(name, mode, dtype)
    if family.prompt:
        for cache in families.CACHES:
            for beams in (1, 3):
                what = f"{cache} {'greedy' if beams == 1 else 'beam'}"
                yield what, lambda cache=cache, beams=beams: check_generate(name, mode, dtype, cache, beams)
    if mode == "strict" and dtype == torch.float32:
        yield "files", lambda: check_files(name)


def report(results):
    """The table of docs/models.md: a row a family, a column a mode and dtype."""
    columns = [(mode, dtype) for mode in MODES for dtype in DTYPES]
    lines = ["| family | " + " | ".join(f"{mode} {dtype}" for mode, dtype in columns) + " |", "|---" * (len(columns) + 1) + "|"]
    for name in families.FAMILIES:
        row = []
        for mode, dtype in columns:
            found = {what: why for (n, m, d, what), why in results.items() if (n, m, d) == (name, mode, dtype)}
            bad = [what for what, why in found.items() if why]
            row.append("not run" if not found else f"all {len(found)}" if not bad else "not: " + ", ".join(bad))
        lines.append(f"| {name} | " + " | ".join(row) + " |")
    return "\n".join(lines) + "\n"


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--families", default=",".join(families.FAMILIES))
    ap.add_argument("--modes", default=",".join(MODES))
    ap.add_argument("--dtypes", default=",".join(DTYPES))
    ap.add_argument("--report", type=pathlib.Path, help="file whose table, below the line `<!-- table -->`, is written anew")
    ap.add_argument("--trace", action="store_true")
    args = ap.parse_args()
    transformers.utils.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    warnings.filterwarnings("ignore", message=".*lru_cache.*")
    results = {}
    for name in args.families.split(","):
        for mode in args.modes.split(","):
            for dtype in args.dtypes.split(","):
                for what, check in cases(name, mode, DTYPES[dtype]):
                    start, why = time.perf_counter(), ""
                    try:
                        check()
                    except Exception as error:
                        why = f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"
                        if args.trace:
                            traceback.print_exc()
                    results[name, mode, dtype, what] = why
                    print(f"{'FAIL' if why else 'ok'} {name} {mode} {dtype} {what} {time.perf_counter() - start:.1f} s {why}", flush=True)
    if args.report:
        text = args.report.read_text()
        head = text.partition("<!-- table -->")[0]
        args.report.write_text(head + "<!-- table -->\n" + report(results))
    failed = sum(bool(why) for why in results.values())
    print(f"{len(results) - failed} passed, {failed} failed")
    return failed != 0


if __name__ == "__main__":
    sys.exit(main())
