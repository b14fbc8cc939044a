# SPDX-License-Identifier: Apache-2.0
"""Kernels for sparse (and, at the end, strided nested) tensors on tpu: gathers, index_add and conversions over indices and values. They run below autograd; arguments come
in the order of the schema, all of them. Tensors whose shape depends on values (a pattern after coalesce) cost one host read of a count."""

import math

import torch

COO, COMPRESSED, NESTED = {}, {}, {}


def _kernel(table, *names):
    def register(function):
        for name in names:
            table[name] = function
        return function

    return register


# ---- helpers --------------------------------------------------------------------------------------------------------------------


def _coo(indices, values, size, coalesced=False):
    return torch.sparse_coo_tensor(indices, values, size, check_invariants=False, is_coalesced=coalesced)


def _strides(sizes):
    strides, step = [], 1
    for n in reversed(sizes):
        strides.insert(0, step)
        step *= n
    return strides


def _flat(indices, sizes):
    """Each entry's place in a row-major tensor of `sizes` (the rows of `indices` are its dimensions)."""
    if not len(sizes):
        return indices.new_zeros(indices.shape[1])
    step = torch.tensor(_strides(sizes), device=indices.device).unsqueeze(1)
    return (indices * step).sum(0)


def _unflat(flat, sizes):
    if not len(sizes):
        return flat.new_zeros(0, flat.shape[0])
    return torch.stack([torch.div(flat, step, rounding_mode="floor") % max(n, 1) for n, step in zip(sizes, _strides(sizes))])


def _parts(t):
    return t._indices(), t._values()


def _result_dtype(a, b, alpha=1):
    return torch.result_type(a, b)


def _into(out, result):
    """The result in the sparse tensor `out`."""
    if result.dtype != out.dtype:
        result = result.to(out.dtype)
    if out.shape != result.shape:
        out.sparse_resize_and_clear_(result.shape, result.sparse_dim(), result.dense_dim())
    return torch.ops.aten.copy_sparse_to_sparse_(out, result, False)


def _scatter_rows(indices, values, size, start=None):
    """A dense tensor of `size` with values[k] added at indices[:, k]."""
    depth = indices.shape[0]
    rows, rest = math.prod(size[:depth]), list(size[depth:])
    flat = torch.zeros([rows, *rest], dtype=values.dtype, device=values.device) if start is None else start.reshape([rows, *rest])
    if rows and values.numel():
        flat = flat.index_add(0, _flat(indices, size[:depth]), values)
    return flat.reshape(size)


def _rows_at(dense, indices):
    """dense[indices[0], indices[1], ...], one row an entry."""
    depth = indices.shape[0]
    rows = dense.reshape([math.prod(dense.shape[:depth]), *dense.shape[depth:]])
    return rows.index_select(0, _flat(indices, dense.shape[:depth]))


# ---- COO: pattern -----------------------------------------------------------------------------------------------------------------


@_kernel(COO, "_coalesce")
def coalesce(self):
    indices, values = _parts(self)
    if self.is_coalesced():
        return self
    sizes = self.shape[: self.sparse_dim()]
    if values.shape[0] < 2:
        return _coo(indices.clone(), values.clone(), self.shape, True)
    places, entry = torch.unique(_flat(indices, sizes), sorted=True, return_inverse=True)
    summed = torch.zeros([places.shape[0], *values.shape[1:]], dtype=values.dtype, device=values.device)
    if values.dtype == torch.bool:
        summed = torch.zeros_like(summed, dtype=torch.uint8).index_add(0, entry, values.to(torch.uint8)) != 0
    elif values.numel():
        summed = summed.index_add(0, entry, values)
    return _coo(_unflat(places, sizes), summed, self.shape, True)


@_kernel(COO, "sparse_mask")
def sparse_mask(self, mask):
    mask = mask if mask.is_coalesced() else coalesce(mask)
    dense = self.to_dense() if self.layout != torch.strided else self
    return _coo(mask._indices().clone(), _rows_at(dense, mask._indices()), self.shape, True)


@_kernel(COO, "_sparse_mask_projection")
def sparse_mask_projection(self, mask, accumulate_matches=False):
    dense = self.to_dense()
    return _coo(mask._indices().clone(), _rows_at(dense, mask._indices()), self.shape, mask.is_coalesced())


@_kernel(COO, "index_select")
def index_select(self, dim, index):
    dim = dim % self.dim()
    self = coalesce(self)
    indices, values = _parts(self)
    size = list(self.shape)
    size[dim] = index.numel()
    if dim >= self.sparse_dim():
        return _coo(indices.clone(), values.index_select(dim - self.sparse_dim() + 1, index), size, True)
    found = (indices[dim].unsqueeze(0) == index.reshape(-1, 1)).nonzero()
    picked = indices.index_select(1, found[:, 1])
    picked = torch.cat([picked[:dim], found[:, :1].t(), picked[dim + 1 :]])
    return _coo(picked, values.index_select(0, found[:, 1]), size)


# ---- COO: arithmetic ----------------------------------------------------------------------------------------------------------------


def _add_coo(a, b, alpha):
    dtype = _result_dtype(a, b)
    if a.shape != b.shape:
        raise RuntimeError(f"add: expected sizes of 'self' and 'other' to match, but {list(a.shape)} != {list(b.shape)}")
    if a.sparse_dim() != b.sparse_dim():
        raise RuntimeError("add: expected 'self' and 'other' to have same density: their dense dimensions differ")
    second = b._values().to(dtype)
    values = torch.cat([a._values().to(dtype), second if alpha == 1 else second * alpha])
    both = _coo(torch.cat([a._indices(), b._indices()], 1), values, a.shape)
    return coalesce(both) if a.is_coalesced() and b.is_coalesced() else both


@_kernel(COO, "add.out")
def add_out(self, other, alpha, out):
    if not isinstance(other, torch.Tensor):
        raise RuntimeError("add: a number cannot be added to a sparse tensor; convert with .to_dense()")
    if self.layout == torch.strided or other.layout == torch.strided:
        if self.layout != torch.strided:
            raise RuntimeError("add(sparse, dense) is not supported. Use add(dense, sparse) instead.")
        if self.dim() < other.dim() or torch.broadcast_shapes(self.shape, other.shape) != self.shape:
            raise RuntimeError(f"add: expected 'other' to be broadcastable to 'self', but {list(other.shape)} is not to {list(self.shape)}")
        if self.shape != other.shape:
            other = torch._sparse_broadcast_to(other, self.shape)
        dtype = _result_dtype(self, other)
        if not torch.can_cast(dtype, out.dtype):
            raise RuntimeError(f"Can't convert result type {dtype} to output {out.dtype}")
        values = other._values().to(dtype)
        total = _scatter_rows(other._indices(), values if alpha == 1 else values * alpha, self.shape, self.to(dtype))
        if out.shape != total.shape:
            out.resize_(total.shape)
        return out.copy_(total)
    return _into(out, _add_coo(self, other, alpha))


def _times_dense(sparse, dense):
    """The entries of `sparse` times those of `dense`, which broadcasts."""
    indices, values = _parts(sparse)
    if dense.dim() == 0:
        return _coo(indices.clone(), values * dense, sparse.shape, sparse.is_coalesced())
    size = torch.broadcast_shapes(sparse.shape, dense.shape)
    if size != sparse.shape:
        sparse = torch._sparse_broadcast_to(sparse, size)
        indices, values = _parts(sparse)
    product = values * _rows_at(dense.expand(size), indices)
    return _coo(indices.clone(), product, size, sparse.is_coalesced())


def _times_coo(a, b):
    if a.dim() == 0 or b.dim() == 0:
        scalar, other = (a, b) if a.dim() == 0 else (b, a)
        return _times_dense(other, scalar.to_dense())
    size = torch.broadcast_shapes(a.shape, b.shape)
    a = coalesce(a if a.shape == size else torch._sparse_broadcast_to(a, size))
    b = coalesce(b if b.shape == size else torch._sparse_broadcast_to(b, size))
    if a.sparse_dim() != b.sparse_dim():
        raise RuntimeError("mul: expected 'self' and 'other' to have the same number of sparse dimensions")
    mine, theirs = _flat(a._indices(), size[: a.sparse_dim()]), _flat(b._indices(), size[: a.sparse_dim()])
    if not mine.numel() or not theirs.numel():
        return _coo(a._indices()[:, :0], (a._values()[:0] * b._values()[:0]), size, True)
    places, entry = torch.unique(torch.cat([mine, theirs]), return_inverse=True)
    at = torch.full(places.shape, -1, device=mine.device)
    at[entry[mine.numel() :]] = torch.arange(theirs.numel(), device=mine.device)
    at = at.index_select(0, entry[: mine.numel()])  # of each of a's entries: where b has it
    both = (at >= 0).nonzero().squeeze(1)
    values = a._values().index_select(0, both) * b._values().index_select(0, at.index_select(0, both))
    return _coo(a._indices().index_select(1, both), values, size, True)


@_kernel(COO, "mul.out")
def mul_out(self, other, out):
    if not isinstance(self, torch.Tensor):  # numbers come as such
        self, other = other, self
    if not isinstance(other, torch.Tensor):
        return _into(out, _coo(self._indices().clone(), self._values() * other, self.shape, self.is_coalesced()))
    if self.layout == torch.strided or other.layout == torch.strided:
        sparse, dense = (other, self) if self.layout == torch.strided else (self, other)
        return _into(out, _times_dense(sparse, dense))
    return _into(out, _times_coo(self, other))


# ---- COO: products --------------------------------------------------------------------------------------------------------------------


def _product(rows, columns, values, dense, height):
    """sum over entries: out[rows[k]] += values[k] * dense[columns[k]]. 16-bit floats are added up in f32."""
    wide = torch.float32 if values.dtype in (torch.bfloat16, torch.float16) else values.dtype
    terms = values.to(wide).reshape(-1, *[1] * (dense.dim() - 1)) * dense.to(wide).index_select(0, columns)
    total = torch.zeros([height, *dense.shape[1:]], dtype=wide, device=dense.device)
    return total.index_add(0, rows, terms) if terms.numel() else total


def _combine(start, product, beta, alpha, dtype):
    product = product if alpha == 1 else product * alpha
    if beta != 0:
        product = product + (start if beta == 1 else start * beta).to(product.dtype)
    return product.to(dtype)


def _check_product(mat1, mat2, name):
    if mat1.dim() != 2 or mat2.dim() != 2:
        raise RuntimeError(f"{name}: expected matrices, got {mat1.dim()}-d and {mat2.dim()}-d tensors")
    if mat1.shape[1] != mat2.shape[0]:
        raise RuntimeError(f"mat1 and mat2 shapes cannot be multiplied ({mat1.shape[0]}x{mat1.shape[1]} and {mat2.shape[0]}x{mat2.shape[1]})")


def _addmm(self, mat1, mat2, beta, alpha):
    _check_product(mat1, mat2, "addmm")
    if mat1.layout == torch.strided and mat2.layout != torch.strided:
        flipped = _addmm(self.t() if self.dim() == 2 else self.unsqueeze(-1), mat2.transpose(0, 1), mat1.t(), beta, alpha)
        return flipped.t().contiguous()
    if mat2.layout != torch.strided:
        mat2 = mat2.to_dense()
    rows, columns = mat1._indices()
    product = _product(rows, columns, mat1._values(), mat2, mat1.shape[0])
    return _combine(self.to_dense() if self.layout != torch.strided else self, product, beta, alpha, mat2.dtype)


@_kernel(COO, "addmm")
def addmm(self, mat1, mat2, beta, alpha):
    return _addmm(self, mat1, mat2, beta, alpha)


@_kernel(COO, "addmm_")
def addmm_(self, mat1, mat2, beta, alpha):
    return self.copy_(_addmm(self, mat1, mat2, beta, alpha))


def _put(out, result):
    if out.shape != result.shape:
        out.resize_(result.shape)
    return out.copy_(result)


@_kernel(COO, "addmm.out")
def addmm_out(self, mat1, mat2, beta, alpha, out):
    return _put(out, _addmm(self, mat1, mat2, beta, alpha))


@_kernel(COO, "_sparse_sparse_matmul")
def sparse_sparse_matmul(self, other):
    _check_product(self, other, "sparse matmul")
    rows, columns = self._indices()
    product = _product(rows, columns, self._values(), other.to_dense(), self.shape[0])
    return product.to(self.dtype).to_sparse()


@_kernel(COO, "bmm")
def bmm(self, mat2):
    self = self.to_dense() if self.sparse_dim() != 3 else self
    if self.layout == torch.strided:
        return torch.bmm(self, mat2)
    batch, rows, columns = self._indices()
    n, height, depth = self.shape
    flat = _product(batch * height + rows, batch * depth + columns, self._values(), mat2.reshape(n * depth, -1), n * height)
    return flat.to(mat2.dtype).reshape(n, height, -1)


@_kernel(COO, "bmm.out")
def bmm_out(self, mat2, out):
    return _put(out, bmm(self, mat2))


# ---- COO: reductions --------------------------------------------------------------------------------------------------------------------


@_kernel(COO, "_sparse_sum_backward")
def sparse_sum_backward(grad, self, dims):
    dims = {d % self.dim() for d in dims}
    dense = grad.to_dense() if grad.layout != torch.strided else grad
    for d in sorted(dims):
        dense = dense.unsqueeze(d)
    return _coo(self._indices().clone(), _rows_at(dense.expand(self.shape), self._indices()), self.shape, self.is_coalesced())


def _pools(self, dim):
    """The entries that a softmax over sparse dimension `dim` holds together: the number of each one's pool, and of pools."""
    indices, sizes = self._indices(), list(self.shape[: self.sparse_dim()])
    kept = [d for d in range(len(sizes)) if d != dim]
    picked = indices.index_select(0, torch.tensor(kept, dtype=torch.int64, device=indices.device))
    _, pool = torch.unique(_flat(picked, [sizes[d] for d in kept]), return_inverse=True)
    return pool, pool.numel()


def _softmax(self, dim, half_to_float, log):
    dim, self = dim % self.dim(), coalesce(self)
    indices, values = _parts(self)
    if half_to_float:
        values = values.float()
    if dim >= self.sparse_dim():
        function = torch.log_softmax if log else torch.softmax
        return _coo(indices.clone(), function(values, dim - self.sparse_dim() + 1), self.shape, True)
    pool, count = _pools(self, dim)
    shape = [count, *values.shape[1:]]
    if not values.numel():
        return _coo(indices.clone(), values.clone(), self.shape, True)
    wide = values.float() if values.dtype in (torch.bfloat16, torch.float16) else values
    top = torch.full(shape, -math.inf, dtype=wide.dtype, device=wide.device).index_reduce(0, pool, wide, "amax")
    moved = wide - top.index_select(0, pool)
    powers = moved.exp()
    total = torch.zeros(shape, dtype=wide.dtype, device=wide.device).index_add(0, pool, powers).index_select(0, pool)
    return _coo(indices.clone(), (moved - total.log() if log else powers / total).to(values.dtype), self.shape, True)


def _softmax_backward(grad, output, dim, self, log):
    dim, output = dim % output.dim(), coalesce(output)
    indices, result = _parts(output)
    given = _rows_at(grad.to_dense() if grad.layout != torch.strided else grad, indices)
    weighted = given if log else given * result
    if dim >= output.sparse_dim():
        total = weighted.sum(dim - output.sparse_dim() + 1, keepdim=True)
    elif result.numel():
        pool, count = _pools(output, dim)
        total = torch.zeros([count, *result.shape[1:]], dtype=result.dtype, device=result.device)
        total = total.index_add(0, pool, weighted).index_select(0, pool)
    else:
        total = result
    values = given - result.exp() * total if log else result * (given - total)
    return _coo(indices.clone(), values, output.shape, True)


COO["_sparse_softmax"] = lambda self, dim, half_to_float: _softmax(self, dim, half_to_float, False)
COO["_sparse_log_softmax"] = lambda self, dim, half_to_float: _softmax(self, dim, half_to_float, True)
COO["_sparse_softmax_backward_data"] = lambda grad, output, dim, self: _softmax_backward(grad, output, dim, self, False)
COO["_sparse_log_softmax_backward_data"] = lambda grad, output, dim, self: _softmax_backward(grad, output, dim, self, True)
COO["is_pinned"] = COMPRESSED["is_pinned"] = NESTED["is_pinned"] = lambda self, device=None: False


# ---- CSR, CSC, BSR, BSC -----------------------------------------------------------------------------------------------------------------


def _as_coo(t):
    return t if t.layout == torch.sparse_coo else _compressed_to_coo(t)


def _back(coo, layout):
    return {torch.sparse_csr: coo.to_sparse_csr, torch.sparse_csc: coo.to_sparse_csc}[layout]()


def _csr_entries(t):
    """Rows, columns and values of a matrix in any sparse layout."""
    if t.dim() == 2 and t.dense_dim() == 0:
        if t.layout == torch.sparse_csr:
            pair = torch._convert_indices_from_csr_to_coo(t.crow_indices(), t.col_indices())
            return pair[0].long(), pair[1].long(), t.values()
        if t.layout == torch.sparse_csc:
            pair = torch._convert_indices_from_csr_to_coo(t.ccol_indices(), t.row_indices(), transpose=True)
            return pair[0].long(), pair[1].long(), t.values()
    coo = t if t.layout == torch.sparse_coo else t.to_dense().to_sparse()
    return (*coo._indices(), coo._values())


def _compressed_to_coo(self):
    if self.layout in (torch.sparse_csr, torch.sparse_csc) and self.dim() == 2:
        rows, columns, values = _csr_entries(self)
        coo = _coo(torch.stack([rows, columns]), values, self.shape, self.layout == torch.sparse_csr)
        return coalesce(coo)
    return self.to_dense().to_sparse()


@_kernel(COMPRESSED, "_to_sparse")
def compressed_to_sparse(self, layout=None, blocksize=None, dense_dim=None):
    if layout == self.layout:
        return self.clone()
    if layout in (None, torch.sparse_coo):
        return _compressed_to_coo(self)
    if layout in (torch.sparse_csr, torch.sparse_csc) and self.layout in (torch.sparse_csr, torch.sparse_csc):
        return _back(_compressed_to_coo(self), layout)
    return self.to_dense().to_sparse(layout=layout, blocksize=blocksize, dense_dim=dense_dim)


@_kernel(COMPRESSED, "_to_sparse.sparse_dim")
def compressed_to_sparse_dim(self, sparse_dim):
    return _compressed_to_coo(self)


COMPRESSED["_to_sparse_csr"] = lambda self, dense_dim=None: compressed_to_sparse(self, torch.sparse_csr, None, dense_dim)
COMPRESSED["_to_sparse_csc"] = lambda self, dense_dim=None: compressed_to_sparse(self, torch.sparse_csc, None, dense_dim)
COMPRESSED["_to_sparse_bsr"] = lambda self, blocksize, dense_dim=None: compressed_to_sparse(self, torch.sparse_bsr, blocksize, dense_dim)
COMPRESSED["_to_sparse_bsc"] = lambda self, blocksize, dense_dim=None: compressed_to_sparse(self, torch.sparse_bsc, blocksize, dense_dim)


def _addmm_compressed(self, mat1, mat2, beta, alpha):
    _check_product(mat1, mat2, "addmm")
    if mat1.layout == torch.strided:
        flipped = _addmm_compressed(self.transpose(0, 1) if self.dim() == 2 else self.unsqueeze(-1), mat2.transpose(0, 1), mat1.t(), beta, alpha)
        return flipped.t().contiguous()
    rows, columns, values = _csr_entries(mat1)
    dense = mat2.to_dense() if mat2.layout != torch.strided else mat2
    start = self.to_dense() if self.layout != torch.strided else self
    return _combine(start, _product(rows, columns, values, dense, mat1.shape[0]), beta, alpha, dense.dtype)


@_kernel(COMPRESSED, "addmm.out")
def csr_addmm_out(self, mat1, mat2, beta, alpha, out):
    result = _addmm_compressed(self, mat1, mat2, beta, alpha)
    if out.layout == torch.strided:
        return _put(out, result)
    return _replace(out, result.to_sparse())


def _replace(out, coo):
    """The matrix in the compressed tensor `out`."""
    made = _back(coo, out.layout)
    return out.resize_as_sparse_(made).copy_(made)


@_kernel(COMPRESSED, "addmv.out")
def csr_addmv_out(self, mat, vec, beta, alpha, out):
    rows, columns, values = _csr_entries(mat)
    return _put(out, _combine(self, _product(rows, columns, values, vec, mat.shape[0]), beta, alpha, vec.dtype))


@_kernel(COMPRESSED, "add.out")
def csr_add_out(self, other, alpha, out):
    if not isinstance(other, torch.Tensor):
        raise RuntimeError("add: a number cannot be added to a sparse tensor; convert with .to_dense()")
    if self.layout == torch.strided:
        return _put(out, torch.add(self, other.to_dense(), alpha=alpha))
    if other.layout == torch.strided:
        return _put(out, torch.add(self.to_dense(), other, alpha=alpha))
    return _replace(out, coalesce(_add_coo(coalesce(_as_coo(self)), coalesce(_as_coo(other)), alpha)))


@_kernel(COMPRESSED, "sparse_mask")
def csr_sparse_mask(self, mask):
    return _back(sparse_mask(self.to_dense() if self.layout != torch.strided else self, coalesce(_as_coo(mask))), mask.layout)


def _sampled(self, mat1, mat2, beta, alpha):
    rows, columns, values = _csr_entries(self)
    product = (mat1.index_select(0, rows) * mat2.t().index_select(0, columns)).sum(1)
    entries = _combine(values, product, beta, alpha, values.dtype)
    return torch.sparse_csr_tensor(self.crow_indices(), self.col_indices(), entries, self.shape, check_invariants=False)


@_kernel(COMPRESSED, "sparse_sampled_addmm")
def sampled_addmm(self, mat1, mat2, beta, alpha):
    return _sampled(self, mat1, mat2, beta, alpha)


@_kernel(COMPRESSED, "sparse_sampled_addmm.out")
def sampled_addmm_out(self, mat1, mat2, beta, alpha, out):
    made = _sampled(self, mat1, mat2, beta, alpha)
    return out.resize_as_sparse_(made).copy_(made)


def _csr_reduce(self, dim, keepdim, dtype, product):
    """Over the entries that are there, as a matrix in CSR."""
    if not keepdim:
        raise RuntimeError("reduction operations on CSR tensors with keepdim=False is unsupported")
    rows, columns, values = _csr_entries(self)
    if dtype is not None:
        values = values.to(dtype)
    elif not values.is_floating_point() and not values.is_complex():
        values = values.long()
    dims = {d % 2 for d in dim}
    size = [1 if d in dims else n for d, n in enumerate(self.shape)]
    kept = [torch.zeros_like(t) if d in dims else t for d, t in enumerate((rows, columns))]
    places, entry = torch.unique(_flat(torch.stack(kept), size), return_inverse=True)
    start = torch.full(places.shape, float(product), device=values.device).to(values.dtype)
    if values.numel():
        start = start.index_reduce(0, entry, values, "prod") if product else start.index_add(0, entry, values)
    return _coo(_unflat(places, size), start, size, True).to_sparse_csr()


COMPRESSED["_sparse_csr_sum.dim_dtype"] = lambda self, dim, keepdim, dtype: _csr_reduce(self, dim, keepdim, dtype, False)
COMPRESSED["_sparse_csr_prod.dim_dtype"] = lambda self, dim, keepdim, dtype: _csr_reduce(self, dim, keepdim, dtype, True)


# ---- nested tensors of the strided layout -----------------------------------------------------------------------------------------------


@_kernel(NESTED, "sum.dim_IntList")
def nested_sum(self, dim, keepdim, dtype):
    if dim is None or len(dim) != 1 or dim[0] % self.dim() != self.dim() - 1:
        raise RuntimeError("NestedTensor only allows reduction of the last dimension for now.")
    return torch._nested_tensor_from_tensor_list([t.sum(-1, keepdim=keepdim, dtype=dtype) for t in self.unbind()])


@_kernel(NESTED, "_transformer_encoder_layer_fwd")
def nested_encoder_layer(src, *args):
    """Padded, with a mask of the padding, and back."""
    *weights, _, _ = args
    lengths = src._nested_tensor_size()[:, 0]
    padded = src.to_padded_tensor(0.0)
    mask = (torch.arange(padded.shape[1]).unsqueeze(0) >= lengths.unsqueeze(1)).to(padded.device)
    out = torch._transformer_encoder_layer_fwd(padded, *weights, mask, 1)
    return torch._nested_tensor_from_tensor_list([row[:n] for row, n in zip(out, lengths.tolist(), strict=True)])
