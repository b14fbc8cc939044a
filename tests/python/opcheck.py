# SPDX-License-Identifier: Apache-2.0
"""PyTorch's operator database on tpu against the CPU, at PyTorch's own tolerances.

    python tests/python/opcheck.py add mul                   these entries (all kinds, f32)
    python tests/python/opcheck.py --list names.txt --kinds forward,grad --dtypes float32,bfloat16
    python tests/python/opcheck.py --all --limit 4           four samples an entry

Kinds: forward (functional form on PyTorch's samples), grad (gradients), inplace, out (right and wrong shape), noncontig, error (same
exception class and text as on CPU); gradcheck, gradgrad, fwd_ad (opgrad.py; want --dtypes float64). Each entry prints one line; the
last line is "N passed, N failed".
"""
import argparse
import functools
import os
import re
import sys
import traceback
import warnings

os.environ.setdefault("OMP_NUM_THREADS", "1")
import torch
from torch.testing._internal.common_methods_invocations import op_db
from torch.testing._internal.common_utils import freeze_rng_state  # noqa: F401
from torch.utils import _pytree as pytree

import opgrad

DEVICE = "tpu"

# Entries that draw: only the shapes, dtypes and strides of their results can agree (tests/python/test_random.py has the statistics).
DRAWS = {"empty", "empty_like", "empty_strided", "empty_permuted", "new_empty", "new_empty_strided",  # memory as it was found
         "rand", "randn", "randint", "rand_like", "randn_like", "randint_like", "normal", "uniform", "exponential", "bernoulli", "multinomial",
         "cauchy", "geometric", "log_normal", "nn.functional.dropout", "nn.functional.dropout2d", "nn.functional.dropout3d",
         "nn.functional.alpha_dropout", "nn.functional.feature_alpha_dropout", "nn.functional.rrelu",
         "nn.functional.fractional_max_pool2d", "nn.functional.fractional_max_pool3d", "svd_lowrank", "pca_lowrank"}


def title(op):
    return f"{op.name}.{op.variant_test_name}" if op.variant_test_name else op.name


@functools.cache
def entries():
    return {title(op): op for op in op_db}


def serves(op, dtype, kind):
    """Whether the entry lists this dtype: for the CPU, which is the reference, and (f32 and f64 apart) for CUDA."""
    if dtype not in op.supported_dtypes("cpu"):
        return False
    if dtype in (torch.float32, torch.float64):
        return True
    backward = kind in ("grad", "gradcheck", "gradgrad", "fwd_ad")
    return dtype in (op.supported_backward_dtypes if backward else op.supported_dtypes)("cuda")


def to_tpu(value):
    """A tensor moved with its strides, requires_grad kept."""
    if not isinstance(value, torch.Tensor):
        return value
    if value.layout != torch.strided:
        return value.to(DEVICE)
    moved = torch.empty_strided(value.size(), value.stride(), dtype=value.dtype, device=DEVICE)
    with torch.no_grad():
        span = 1 + sum((n - 1) * s for n, s in zip(value.size(), value.stride())) if value.numel() else 0
        held = value.untyped_storage().nbytes() // value.element_size()
        if value.storage_offset() != 0 or held > span > 0:
            # Part of a storage: as_strided may reach the rest.
            base = torch.as_strided(value.detach(), (held,), (1,), 0).to(DEVICE)
            moved = torch.as_strided(base, value.size(), value.stride(), value.storage_offset()).detach()
        else:
            base = torch.as_strided(value.detach(), (span,), (1,)).clone()
            torch.as_strided(moved, (span,), (1,)).copy_(base)
    if value.is_conj():
        moved = moved.conj() if not value.is_conj() else moved
    return moved.requires_grad_(value.requires_grad)


def to_tpu_with_aliases(value, bases):
    """A tensor moved as the view of its storage that it is; `bases` keeps what was moved already."""
    if value.layout != torch.strided or not value.untyped_storage().nbytes() or value.untyped_storage().nbytes() % value.element_size():
        return to_tpu(value)
    key = (value.untyped_storage()._cdata, value.dtype)
    if key not in bases:
        flat = torch.empty(0, dtype=value.dtype).set_(value.untyped_storage())
        bases[key] = flat.clone().to(DEVICE)
    return bases[key].as_strided(value.size(), value.stride(), value.storage_offset()).requires_grad_(value.requires_grad)


# Entries whose tensor arguments (not the input) PyTorch wants on the CPU whatever the device.
ON_CPU = {"tensor_split"}


def move(tree, op=None, aliases=False):
    bases, done = {}, {}

    def one(v):
        if not isinstance(v, torch.Tensor):
            return torch.device(DEVICE) if isinstance(v, torch.device) or v == "cpu" else v
        if op is not None and op.name in ON_CPU and v is not tree[0]:
            return v
        if id(v) not in done:  # the same tensor twice stays one
            plain = v.resolve_conj().resolve_neg()
            done[id(v)] = to_tpu_with_aliases(plain, bases) if aliases else to_tpu(plain)
        return done[id(v)]

    return pytree.tree_map(one, tree)


def home(tree):
    return pytree.tree_map(lambda v: v.detach().cpu() if isinstance(v, torch.Tensor) else v, tree)


def tolerance(op, dtype):
    """The entry's own overrides for CPU/CUDA comparisons, else assert_close's defaults."""
    from torch.testing._internal.common_device_type import toleranceOverride, tol  # noqa: F401

    found = {}
    for decorator in getattr(op, "decorators", ()):
        inner = getattr(decorator, "decorators", [decorator])
        for d in inner:
            if isinstance(d, toleranceOverride) and dtype in d.d:
                found = {"rtol": max(d.d[dtype].rtol, found.get("rtol", 0)), "atol": max(d.d[dtype].atol, found.get("atol", 0))}
    if not found:
        return {}
    default = torch.testing._comparison.get_tolerances(dtype, rtol=None, atol=None)  # PyTorch's assertEqual takes the wider one too
    return {"rtol": max(found["rtol"], default[0]), "atol": max(found["atol"], default[1])}


def same(got, want, op, dtype, strides=True):
    got, want = pytree.tree_leaves(got), pytree.tree_leaves(want)
    assert len(got) == len(want), f"{len(got)} results instead of {len(want)}"
    for g, w in zip(got, want):
        if isinstance(w, torch.Tensor):
            assert isinstance(g, torch.Tensor) and g.device.type == DEVICE, f"result on {getattr(g, 'device', type(g))}"
            if strides and w.numel() > 1 and w.layout == torch.strided:
                assert g.stride() == w.stride(), f"strides {g.stride()} instead of {w.stride()} (sizes {tuple(w.shape)})"
            if op.name in DRAWS:
                assert (g.shape, g.dtype) == (w.shape, w.dtype), f"{g.dtype}{tuple(g.shape)} instead of {w.dtype}{tuple(w.shape)}"
                continue
            torch.testing.assert_close(g.detach().cpu(), w.detach(), equal_nan=True, **tolerance(op, dtype))
        else:
            assert g == w or (g != g and w != w), f"{g!r} instead of {w!r}"


def copy_tree(tree):
    return pytree.tree_map(lambda v: v.detach().clone(memory_format=torch.preserve_format).requires_grad_(v.requires_grad)
                           if isinstance(v, torch.Tensor) and v.layout == torch.strided else v, tree)


def samples(op, dtype, grad, limit, kind="sample_inputs"):
    torch.manual_seed(0)
    found = [s for s in getattr(op, kind)("cpu", dtype, requires_grad=grad) if not s.kwargs.get("dropout_p")]
    step = max(1, len(found) // limit) if limit else 1
    return found[::step][:limit or None]


# Entries that say where elements come from: among equal ones PyTorch leaves the choice open. Ours is the first, the CPU's sort is not
# stable. (the argument that is the dimension, its default)
CHOICES = {"sort": (0, -1), "argsort": (0, -1), "topk": (1, -1), "kthvalue": (1, -1)}


def chosen(op, sample, result):
    """The result with indices replaced by the elements they name, where the choice is open; indices must be distinct."""
    if op.name not in CHOICES or sample.kwargs.get("stable"):
        return result
    at, default = CHOICES[op.name]
    dim = sample.kwargs.get("dim", sample.args[at] if len(sample.args) > at else default)
    leaves = pytree.tree_leaves(result)
    index = leaves[-1].cpu()
    if op.name != "kthvalue" and index.dim():
        ordered = index.sort(dim=dim, stable=True).values
        assert ordered.diff(dim=dim).ne(0).all(), "an element is named twice"
    if index.dim() < sample.input.dim():
        index = index.unsqueeze(dim)
    picked = torch.take_along_dim(sample.input, index, dim) if sample.input.dim() else sample.input
    return leaves[:-1] + [picked.to(leaves[-1].device)]


HALF = (torch.bfloat16, torch.float16)


def wider(tree):
    """The same tree with 16-bit floats as float64."""
    def one(v):
        if v in HALF:
            return torch.float64
        if not isinstance(v, torch.Tensor) or v.dtype not in HALF:
            return v
        return v.detach().double().requires_grad_(v.requires_grad)

    return pytree.tree_map(one, tree)


def no_farther(got, want, exact):
    """Whether the largest error is at most the CPU's and one rounding of the largest value."""
    if not want.is_floating_point() or not want.numel():
        return False
    exact = exact.detach().double()
    errors = [(t.detach().cpu().double() - exact).abs().max() for t in (got, want)]
    return bool(errors[0] <= errors[1] + torch.finfo(want.dtype).eps / 2 * exact.abs().max())  # False where one is NaN


def same_or_truer(got, want, exact, op, dtype, strides=True):
    """As the CPU says. 16-bit floats may instead agree, at the same tolerance, with the float64 result rounded once, or be no farther
    from it than the CPU is (and one rounding): the CPU rounds its own intermediate results to 16 bits."""
    try:
        same(got, want, op, dtype, strides)
    except AssertionError:
        if dtype not in HALF:
            raise
        for g, w, e in zip(*map(pytree.tree_leaves, (got, want, exact()))):
            if isinstance(w, torch.Tensor):
                assert (g.shape, g.dtype) == (w.shape, w.dtype), f"{g.dtype}{tuple(g.shape)} instead of {w.dtype}{tuple(w.shape)}"
                assert not strides or w.numel() < 2 or g.stride() == w.stride(), f"strides {g.stride()} instead of {w.stride()}"
                if not no_farther(g, w, e):
                    same(g, e.detach().to(w.dtype), op, dtype, strides=False)
            else:
                same(g, w, op, dtype)


def check_forward(op, dtype, limit, kind="sample_inputs"):
    for s in samples(op, dtype, False, limit, kind):
        want = op(s.input, *s.args, **s.kwargs)
        inputs = move((s.input, s.args, s.kwargs), op)

        def exact():
            first, args, kwargs = wider((s.input, s.args, s.kwargs))
            return op(first, *args, **kwargs)

        if not any(isinstance(t, torch.Tensor) for t in pytree.tree_leaves(inputs)) and isinstance(want, torch.Tensor):
            inputs[2].setdefault("device", DEVICE)  # a factory's sample that leaves the device open
        got = op(inputs[0], *inputs[1], **inputs[2])
        same_or_truer(chosen(op, s, got), chosen(op, s, want), exact, op, dtype)


def gradients(op, sample, inputs, dtype):
    out = sample.output_process_fn_grad(op(inputs[0], *inputs[1], **inputs[2]))
    outs = [o for o in pytree.tree_leaves(out) if isinstance(o, torch.Tensor) and o.requires_grad]
    leaves = [t for t in pytree.tree_leaves(inputs) if isinstance(t, torch.Tensor) and t.requires_grad]
    if not outs:
        return []
    real = torch.empty(0, dtype=dtype).real.dtype
    tied = dtype in HALF and (op.name in CHOICES or op.name == "msort")  # who among equals gets the gradient is open
    weights = [torch.linspace(-1 + 2 * tied, 1, o.numel(), dtype=real).reshape(o.shape).to(o.device).to(o.dtype) for o in outs]
    return [g for g in torch.autograd.grad(outs, leaves, weights, allow_unused=True) if g is not None]


def check_grad(op, dtype, limit):
    if not op.supports_autograd:
        return
    for s in samples(op, dtype, True, limit):
        inputs = (s.input, s.args, s.kwargs)
        want, got = gradients(op, s, inputs, dtype), gradients(op, s, move(inputs, op), dtype)
        same_or_truer(got, want, lambda: gradients(op, s, wider(inputs), dtype), op, dtype, strides=False)


def check_compile(op, dtype, limit):
    """Each sample's function through torch.compile(backend="tpu"): values, and gradients where there are any."""
    grad = op.supports_autograd and dtype in op.supported_backward_dtypes("cpu")
    for s in samples(op, dtype, grad, limit):
        torch._dynamo.reset()
        run = torch.compile(op.get_op(), backend="tpu")
        inputs = (s.input, s.args, s.kwargs)
        moved = move(inputs, op)
        want, got = op(s.input, *s.args, **s.kwargs), run(moved[0], *moved[1], **moved[2])

        def exact():
            first, args, kwargs = wider(inputs)
            return op(first, *args, **kwargs)

        same_or_truer(chosen(op, s, got), chosen(op, s, want), exact, op, dtype)
        if grad:
            want, got = gradients(op, s, inputs, dtype), gradients(run, s, moved, dtype)
            same_or_truer(got, want, lambda: gradients(op, s, wider(inputs), dtype), op, dtype, strides=False)


def check_inplace(op, dtype, limit):
    variant = op.get_inplace()
    if variant is None:
        return
    for s in samples(op, dtype, False, limit):
        cpu, tpu = copy_tree((s.input, s.args, s.kwargs)), move((s.input, s.args, s.kwargs), op)
        try:
            want = variant(cpu[0], *cpu[1], **cpu[2])
        except Exception as e:
            try:
                variant(tpu[0], *tpu[1], **tpu[2])
            except type(e):
                continue
            raise AssertionError(f"CPU raises {e!r}, tpu does not")
        got = variant(tpu[0], *tpu[1], **tpu[2])
        same(got, want, op, dtype)
        same(tpu[0], cpu[0], op, dtype)


def check_out(op, dtype, limit):
    if not op.supports_out:
        return
    for s in samples(op, dtype, False, limit):
        want = op(s.input, *s.args, **s.kwargs)
        if not all(isinstance(w, torch.Tensor) for w in pytree.tree_leaves(want)):
            continue
        for shaped in (True, False):
            out = pytree.tree_map(lambda w: torch.empty_like(w, device=DEVICE) if shaped else
                                  torch.empty(0, dtype=w.dtype, device=DEVICE), want)
            inputs = move((s.input, s.args, s.kwargs), op)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                op(inputs[0], *inputs[1], out=out, **inputs[2])
            same(out, want, op, dtype, strides=False)


def check_error(op, dtype, limit):
    if op.error_inputs_func is None:
        return
    for e in op.error_inputs("cpu"):
        s = e.sample_input
        try:
            op(s.input, *s.args, **s.kwargs)
            continue
        except Exception as error:
            want = error
        inputs = move((s.input, s.args, s.kwargs), op, aliases=True)
        try:
            home(op(inputs[0], *inputs[1], **inputs[2]))
            torch.tpu.synchronize()
        except Exception as got:
            if isinstance(got, IndexError) and "out of bounds" in str(got) and "out of" in str(want):
                continue  # a bad index is found by the next read, which names the op and the line
            a, b = re.sub(r"\btpu(:0)?\b", "cpu", str(got).split("\n")[0]), str(want).split("\n")[0]
            assert type(got) is type(want) and a == b, f"{type(got).__name__}: {a!r} instead of {type(want).__name__}: {b!r}"
        else:
            raise AssertionError(f"no exception; CPU raises {want!r}")


KINDS = {
    "forward": check_forward,
    "grad": check_grad,
    "compile": check_compile,
    "inplace": check_inplace,
    "out": check_out,
    "noncontig": functools.partial(check_forward, kind="noncontiguous_samples"),
    "error": check_error,
}


def noncontiguous(op, dtype, limit):
    for s in samples(op, dtype, False, limit):
        t = s.noncontiguous()
        want = op(t.input, *t.args, **t.kwargs)
        inputs = move((t.input, t.args, t.kwargs), op)
        same(op(inputs[0], *inputs[1], **inputs[2]), want, op, dtype)


KINDS["noncontig"] = noncontiguous
KINDS.update((kind, functools.partial(check, move=move)) for kind, check in (
    ("gradcheck", opgrad.check_gradcheck), ("gradgrad", opgrad.check_gradgrad), ("fwd_ad", opgrad.check_fwd_ad)))


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("names", nargs="*")
    ap.add_argument("--list", help="file with one entry name a line")
    ap.add_argument("--all", action="store_true")
    ap.add_argument("--kinds", default="forward,grad,inplace,out,noncontig,error")
    ap.add_argument("--dtypes", default="float32")
    ap.add_argument("--limit", type=int, default=0)
    ap.add_argument("--trace", action="store_true", help="print tracebacks")
    ap.add_argument("--quiet", action="store_true", help="only failures")
    args = ap.parse_args()
    names = list(args.names)
    if args.list:
        names += open(args.list).read().split()
    chosen = op_db if args.all else [op for op in op_db if op.name in names or title(op) in names]
    warnings.filterwarnings("ignore")
    passed = failed = 0
    for op in {id(op): op for op in chosen}.values():
        for text in args.dtypes.split(","):
            dtype = getattr(torch, text)
            bad = []
            before = dict(torch.tpu.fallbacks())
            for kind in args.kinds.split(","):
                if not serves(op, dtype, kind):
                    continue
                try:
                    KINDS[kind](op, dtype, args.limit)
                    passed += 1
                except Exception as e:
                    failed += 1
                    bad.append(f"{kind}: {type(e).__name__}: {' '.join(str(e).split())[:300]}")
                    if args.trace:
                        traceback.print_exc()
            fallbacks = ",".join(k for k, n in torch.tpu.fallbacks().items() if before.get(k) != n)
            if bad or not args.quiet or fallbacks:
                print(f"{'FAIL' if bad else 'ok  '} {title(op)} {text}{'  [on CPU: ' + fallbacks + ']' if fallbacks else ''}", flush=True)
            for line in bad:
                print("     " + line, flush=True)
    print(f"{passed} passed, {failed} failed")
    return failed != 0


if __name__ == "__main__":
    sys.exit(main())
