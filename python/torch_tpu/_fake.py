# SPDX-License-Identifier: Apache-2.0
"""Shapes under FakeTensorMode that PyTorch's Meta functions refuse, though the op exists on tpu. Used by torch.compile and torch.export."""

import torch


def _grouped_mm(fake_mode, func, mat_a, mat_b, offs=None, bias=None, out_dtype=None):
    """PyTorch's Meta function states what CUDA takes: bfloat16 only. On tpu every floating dtype has a grouped product."""
    taken = mat_a.dtype == torch.bfloat16 or not mat_a.dtype.is_floating_point or mat_a.dtype != mat_b.dtype
    if mat_a.device.type != "tpu" or taken:
        return NotImplemented
    from torch._meta_registrations import _create_grouped_mm_output_tensor

    with fake_mode:
        return _create_grouped_mm_output_tensor(mat_a, mat_b, offs, out_dtype or mat_a.dtype)


def register():
    from torch._subclasses import fake_impls

    op = torch.ops.aten._grouped_mm.default
    if not fake_impls._is_op_registered_to_fake_rule(op):
        fake_impls.register_op_impl(op)(_grouped_mm)
