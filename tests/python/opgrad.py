# SPDX-License-Identifier: Apache-2.0
"""Derivatives of the operator database on tpu against finite differences, in float64, as PyTorch's own test_ops_gradients checks them.

Kinds for opcheck.py and opdb.py: gradcheck (reverse mode, batched and undefined gradients, in-place form), gradgrad (second order,
contiguous and other grad_outputs), fwd_ad (forward mode, and forward over reverse where the entry supports it). Each evaluation is a
handful of launches on tiny tensors, so the smallest samples are taken. What PyTorch itself skips or expects to fail on the CPU is left out.
"""
import functools
import unittest

import torch
from torch.autograd.gradcheck import gradcheck, gradgradcheck
from torch.utils import _pytree as pytree


def left_out(op, test_class, test_name, dtype):
    """Whether PyTorch skips this test on the CPU or expects it to fail."""
    for decorator in op.get_decorators(test_class, test_name, "cpu", dtype, {}):
        if decorator is unittest.expectedFailure:
            return True
        try:
            probe = decorator(lambda self: None)
        except Exception:  # noqa: BLE001 - decorators that want a device-generic test say nothing about the CPU
            continue
        if getattr(probe, "__unittest_skip__", False):
            return True
    return False


def numel(tree):
    return sum(t.numel() for t in pytree.tree_leaves(tree) if isinstance(t, torch.Tensor))


def smallest(op, dtype, limit, requires_grad=True):
    """`limit` samples (0: all), those with the fewest elements first; ones with fewer than two elements last."""
    torch.manual_seed(0)
    found = [s for s in op.sample_inputs("cpu", dtype, requires_grad=requires_grad) if not s.kwargs.get("dropout_p")]
    sizes = [numel((s.input, s.args, s.kwargs)) for s in found]
    order = sorted(range(len(found)), key=lambda i: (sizes[i] < 2, sizes[i]))
    return [found[i] for i in order[:limit or None]]


def as_function(op, variant, sample, inputs):
    """The call as a function of the tensors that require gradients, and these tensors."""
    leaves, spec = pytree.tree_flatten(inputs)
    at = [i for i, leaf in enumerate(leaves) if isinstance(leaf, torch.Tensor) and leaf.requires_grad]

    def call(*tensors):
        filled = list(leaves)
        for i, tensor in zip(at, tensors):
            filled[i] = tensor
        first, args, kwargs = pytree.tree_unflatten(filled, spec)
        return sample.output_process_fn_grad(op.gradcheck_wrapper(variant, first, *args, **kwargs))

    return call, tuple(leaves[i] for i in at)


def variants(op, which):
    """(test name, function): the functional form and, where it has gradients, the in-place form."""
    yield which[0], op.get_op()
    inplace = op.get_inplace()
    if inplace is not None and op.supports_inplace_autograd and which[1]:
        yield which[1], lambda first, *args, **kwargs: inplace(first.clone(), *args, **kwargs)


def each(op, dtype, limit, test_class, which, move, check):
    """check(function, tensors) for every sample on tpu. One that fails on the CPU in the same way says nothing about tpu."""
    if not op.supports_autograd or dtype not in op.supported_backward_dtypes("cpu"):
        return
    for test_name, variant in variants(op, which):
        if left_out(op, test_class, test_name, dtype):
            continue
        for sample in smallest(op, dtype, limit):
            if sample.broadcasts_input and test_name == which[1]:
                continue
            inputs = (sample.input, sample.args, sample.kwargs)
            call, tensors = as_function(op, variant, sample, move(inputs, op))
            if not tensors:
                continue
            try:
                assert check(call, tensors)
            except Exception as failure:
                try:
                    check(*as_function(op, variant, sample, inputs))
                except type(failure):
                    continue
                raise


def options(op):
    return {"check_grad_dtypes": True, "nondet_tol": op.gradcheck_nondet_tol, "fast_mode": op.gradcheck_fast_mode is not False}


def check_gradcheck(op, dtype, limit, move):
    each(op, dtype, limit, "TestBwdGradients", ("test_fn_grad", "test_inplace_grad"), move,
         functools.partial(gradcheck, check_batched_grad=op.check_batched_grad, **options(op)))


def check_gradgrad(op, dtype, limit, move):
    if not op.supports_gradgrad:
        return

    def check(call, tensors):
        return all(gradgradcheck(call, tensors, gen_non_contig_grad_outputs=other, check_batched_grad=op.check_batched_gradgrad,
                                 **options(op)) for other in (False, True))

    each(op, dtype, limit, "TestBwdGradients", ("test_fn_gradgrad", "test_inplace_gradgrad"), move, check)


def check_fwd_ad(op, dtype, limit, move):
    if not op.supports_forward_ad:
        return
    each(op, dtype, limit, "TestFwdGradients", ("test_forward_mode_AD", "test_inplace_forward_mode_AD"), move,
         functools.partial(gradcheck, check_batched_grad=False, check_forward_ad=True, check_backward_ad=False,
                           check_undefined_grad=False, check_batched_forward_grad=op.check_batched_forward_grad, **options(op)))
    if op.supports_fwgrad_bwgrad:
        each(op, dtype, limit, "TestFwdGradients", ("test_fn_fwgrad_bwgrad", None), move,
             functools.partial(gradgradcheck, check_batched_grad=False, check_fwd_over_rev=True, check_rev_over_rev=False,
                               check_undefined_grad=False, **options(op)))
