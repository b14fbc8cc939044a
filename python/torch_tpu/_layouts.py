# SPDX-License-Identifier: Apache-2.0
"""Sparse and nested tensors on tpu: which way each operator goes. shim/layouts.cpp asks `way` at an operator's first call.

Sparse and nested tensors are made of dense ones. PyTorch's CPU kernels that CUDA shares make calls on those only, so they serve tpu too ("cpu
kernel"); those that read memory have kernels here or in _sparse.py ("python"). Anything else raises, naming the operator."""

import functools

import torch

# Kernels that CPU and CUDA share (one name for both in PyTorch's native_functions.yaml), by overload. Without those that call a DispatchStub.
_UNARY = (
    "abs asin asinh atan atanh ceil deg2rad erf erfinv expm1 floor frac log1p nan_to_num neg rad2deg round sgn sign signbit sin sinh sqrt tan "
    "tanh trunc isneginf isposinf angle"
).split()
_SPARSE = (
    "isnan isinf any relu relu_ add.Tensor add_.Tensor sub.Tensor sub_.Tensor sub.out mul.Tensor mul_.Tensor div.Tensor div_.Tensor div.out "
    "div.Tensor_mode div_.Tensor_mode div.out_mode floor_divide floor_divide_.Tensor floor_divide.out pow.Tensor_Scalar pow.Tensor_Scalar_out "
    "cat clone copy_ empty.memory_format empty_like zeros.out zero_ unsqueeze permute narrow_copy view_as_real view_as_complex conj_physical.out "
    "mm mm.out mv sum sum.dim_IntList native_norm native_norm.ScalarOpt_dim_dtype norm.ScalarOpt_dim norm.ScalarOpt_dim_dtype "
    "threshold_backward threshold_backward.grad_input resize_as_sparse_ sparse_resize_ sparse_resize_and_clear_ _sparse_broadcast_to "
    "_sparse_coo_tensor_with_dims _sparse_coo_tensor_with_dims_and_tensors _to_dense sparse_dim dense_dim _dimI _dimV _nnz is_coalesced _indices "
    "_values _coalesced_ indices values copy_sparse_to_sparse_ _to_sparse _to_sparse.sparse_dim _to_sparse_csr _to_sparse_csc _to_sparse_bsr "
    "_to_sparse_bsc"
).split()
_SPARSE_CSR = (
    "isnan isinf relu relu_ add.Tensor add_.Tensor mul.Tensor mul_.Tensor mul.out mul.Scalar mul_.Scalar _conj_physical conj_physical.out "
    "conj_physical_ copy_ empty.memory_format empty_like resize_ fill_.Scalar mm mm.out addmm select.int select_copy.int sum sum.dim_IntList "
    "threshold_backward threshold_backward.grad_input clone resize_as_sparse_ zero_ _to_dense sparse_dim dense_dim _nnz values "
    "crow_indices col_indices ccol_indices row_indices _to_sparse _to_sparse.sparse_dim _to_sparse_csr _to_sparse_csc _to_sparse_bsr "
    "_to_sparse_bsc normal_"
).split()
_NESTED = (
    "native_dropout native_dropout_backward abs abs_ sgn sgn_ add.Tensor add_.Tensor all.dim logical_not logical_not_ cat chunk copy_ cos div.Tensor "
    "div.Scalar embedding empty_like fill_.Scalar fill_.Tensor isnan is_same_size native_layer_norm native_layer_norm_backward linear "
    "linear_backward matmul matmul_backward matmul.out value_selecting_reduction_backward mul.Tensor mul_.Tensor mul.Scalar mul_.Scalar narrow "
    "ones_like neg neg_ relu relu_ gelu gelu_ gelu_backward select.int _nested_select_backward silu silu_ silu_backward sin detach _softmax "
    "_softmax_backward_data split_with_sizes squeeze squeeze.dim squeeze.dims sqrt tanh tanh_ threshold_backward transpose.int "
    "_nested_tensor_size _nested_tensor_strides _nested_tensor_storage_offsets _nested_from_padded_and_nested_example unsqueeze where.self "
    "where.self_out clone zero_ sub.Tensor values unbind.int _to_copy masked_fill.Scalar view eq.Scalar eq.Tensor ge.Scalar gt.Scalar normal_ alias "
    "isinf isposinf isneginf _safe_softmax bmm to_padded_tensor _nested_tensor_softmax_with_shape"
).split()


@functools.cache
def _shared(layout):
    if layout == "nested":
        return frozenset(_NESTED)
    unary = {name + form for name in _UNARY for form in ("", "_", ".out")}
    return frozenset(_SPARSE if layout == "sparse" else _SPARSE_CSR) | unary


@functools.cache
def _kernels(layout):
    from torch_tpu import _sparse

    return {"sparse": _sparse.COO, "sparse_csr": _sparse.COMPRESSED, "nested": _sparse.NESTED}[layout]


def _short(name, overload):
    name = name.partition("::")[2]
    return f"{name}.{overload}" if overload else name


def way(layout, name, overload, has_cpu):
    """ "python", "cpu kernel", or why there is none."""
    short = _short(name, overload)
    if short in _kernels(layout):
        return "python"
    if has_cpu and short in _shared(layout):
        return "cpu kernel"
    what = {"sparse": "sparse COO", "sparse_csr": "sparse compressed", "nested": "nested (strided layout)"}[layout]
    instead = "use layout=torch.jagged, or padded dense tensors" if layout == "nested" else "convert with .to_dense()"
    return f"The operator '{name}{'.' + overload if overload else ''}' has no form for {what} tensors on tpu; {instead}"


def run(layout, name, overload, args):
    with torch.no_grad(), torch._C._AutoDispatchBelowAutograd():
        return _kernels(layout)[_short(name, overload)](*args)
