# SPDX-License-Identifier: Apache-2.0
"""Sparse tensors on tpu against the CPU: construction, conversions, arithmetic, products, reductions, gradients, optimizers."""

import io

import pytest
import torch

INDICES, VALUES, SIZE = torch.tensor([[0, 1, 2, 0, 1], [1, 0, 3, 1, 2]]), torch.tensor([1.0, 2.0, 3.0, 4.0, -1.5]), (3, 4)


def coo(device, dtype=torch.float32):
    return torch.sparse_coo_tensor(INDICES, VALUES.to(dtype), SIZE).to(device)


def csr(device, dtype=torch.float32):
    return coo("cpu", dtype).to_sparse_csr().to(device)


def dense(device, *shape):
    torch.manual_seed(len(shape))
    return torch.randn(shape).to(device)


def plain(t):
    t = t.detach()
    return (t if t.layout == torch.strided else t.to_dense()).cpu()


def same(function, layout=True):
    """The same value and layout on both devices, nothing computed on the CPU."""
    want, fallbacks = function("cpu"), torch.tpu.fallbacks()
    got = function("tpu")
    assert torch.tpu.fallbacks() == fallbacks
    for g, w in zip(*[t if isinstance(t, (tuple, list)) else [t] for t in (got, want)], strict=True):
        assert g.device.type == "tpu" and g.shape == w.shape and g.dtype == w.dtype
        assert not layout or g.layout == w.layout
        torch.testing.assert_close(plain(g), plain(w))


COO = {
    "from_parts": lambda d: torch.sparse_coo_tensor(INDICES.to(d), VALUES.to(d), SIZE),
    "from_parts_without_size": lambda d: torch.sparse_coo_tensor(INDICES.to(d), VALUES.to(d)),
    "empty": lambda d: torch.sparse_coo_tensor(SIZE, device=d),
    "moved": coo,
    "to_sparse": lambda d: dense(d, 3, 4).relu().to_sparse(),
    "to_sparse_with_dense_dims": lambda d: dense(d, 3, 4, 2).relu().to_sparse(1),
    "coalesce": lambda d: coo(d).coalesce(),
    "indices": lambda d: coo(d).coalesce().indices(),
    "values": lambda d: coo(d).coalesce().values(),
    "to_dense": lambda d: coo(d).to_dense(),
    "dtype": lambda d: coo(d).double(),
    "clone": lambda d: coo(d).clone(),
    "zero_": lambda d: coo(d).zero_(),
    "transpose": lambda d: coo(d).t(),
    "permute": lambda d: dense(d, 3, 4, 2).relu().to_sparse().permute(2, 0, 1),
    "unsqueeze": lambda d: coo(d).unsqueeze(0),
    "cat": lambda d: torch.cat([coo(d), coo(d)], 1),
    "select": lambda d: coo(d)[1],
    "index_select": lambda d: coo(d).index_select(1, torch.tensor([2, 0, 0], device=d)),
    "add": lambda d: coo(d) + coo(d) * 2,
    "add_coalesced": lambda d: coo(d).coalesce() + (coo(d) * 2).coalesce(),
    "sub": lambda d: coo(d) - coo(d) * 3,
    "add_to_dense": lambda d: dense(d, 3, 4) + coo(d),
    "add_to_dense_in_place": lambda d: dense(d, 3, 4).add_(coo(d), alpha=-0.5),
    "in_place": lambda d: coo(d).add_(coo(d)),
    "mul": lambda d: coo(d) * (coo(d) + coo(d)),
    "mul_dense": lambda d: coo(d) * dense(d, 3, 4),
    "mul_number": lambda d: coo(d) * 3,
    "mul_in_place": lambda d: coo(d).mul_(2),
    "div": lambda d: coo(d) / 4,
    "neg": lambda d: -coo(d),
    "abs_sqrt": lambda d: coo(d).coalesce().abs().sqrt(),
    "sin": lambda d: coo(d).sin(),
    "relu": lambda d: coo(d).relu(),
    "pow": lambda d: coo(d).coalesce() ** 2,
    "mm": lambda d: torch.sparse.mm(coo(d), dense(d, 4, 5)),
    "matmul": lambda d: coo(d) @ dense(d, 4, 5),
    "dense_matmul": lambda d: dense(d, 5, 3) @ coo(d),
    "mv": lambda d: coo(d) @ dense(d, 4),
    "sparse_matmul": lambda d: torch.sparse.mm(coo(d), coo(d).t()),
    "addmm": lambda d: torch.addmm(dense(d, 3, 5), coo(d), dense(d, 4, 5), beta=0.5, alpha=2),
    "sparse_addmm": lambda d: torch.sparse.addmm(dense(d, 3, 5), coo(d), dense(d, 4, 5), beta=0.5, alpha=2),
    "bmm": lambda d: torch.bmm(dense(d, 2, 3, 4).relu().to_sparse(), dense(d, 2, 4, 5)),
    "sum": lambda d: coo(d).sum(),
    "sparse_sum": lambda d: torch.sparse.sum(coo(d)),
    "sparse_sum_by_dim": lambda d: torch.sparse.sum(coo(d), 1),
    "softmax": lambda d: torch.sparse.softmax(coo(d), 1),
    "softmax_by_first": lambda d: torch.sparse.softmax(coo(d), 0),
    "softmax_of_dense_dim": lambda d: torch.sparse.softmax(dense(d, 3, 4, 2).relu().to_sparse(1), 2),
    "log_softmax": lambda d: torch.sparse.log_softmax(coo(d), 1),
    "norm": lambda d: coo(d).coalesce().norm(),
    "mask": lambda d: dense(d, 3, 4).sparse_mask(coo(d).coalesce()),
}

CSR = {
    "from_parts": lambda d: torch.sparse_csr_tensor(csr(d).crow_indices(), csr(d).col_indices(), csr(d).values(), SIZE),
    "moved": csr,
    "from_dense": lambda d: dense(d, 3, 4).relu().to_sparse_csr(),
    "from_coo": lambda d: coo(d).to_sparse_csr(),
    "to_coo": lambda d: csr(d).to_sparse(),
    "to_dense": lambda d: csr(d).to_dense(),
    "csc": lambda d: dense(d, 3, 4).relu().to_sparse_csc(),
    "bsr": lambda d: dense(d, 4, 4).relu().to_sparse_bsr((2, 2)),
    "crow_indices": lambda d: csr(d).crow_indices(),
    "col_indices": lambda d: csr(d).col_indices(),
    "values": lambda d: csr(d).values(),
    "dtype": lambda d: csr(d).double(),
    "clone": lambda d: csr(d).clone(),
    "matmul": lambda d: csr(d) @ dense(d, 4, 5),
    "dense_matmul": lambda d: dense(d, 5, 3) @ csr(d),
    "mv": lambda d: csr(d) @ dense(d, 4),
    "addmm": lambda d: torch.addmm(dense(d, 3, 5), csr(d), dense(d, 4, 5), beta=0.5, alpha=2),
    "sparse_mm": lambda d: torch.sparse.mm(csr(d), dense(d, 4, 5)),
    "add": lambda d: csr(d) + csr(d) * 2,
    "mul_number": lambda d: csr(d) * 2,
    "sin": lambda d: csr(d).sin(),
    "relu": lambda d: csr(d).relu(),
    "transpose": lambda d: csr(d).t(),
    "sum": lambda d: csr(d).sum(),
}


@pytest.mark.parametrize("name", COO)
def test_coo(name):
    same(COO[name])


@pytest.mark.parametrize("name", CSR)
def test_csr(name):
    same(CSR[name])


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float64, torch.complex64, torch.int64], ids=str)
def test_dtypes(dtype):
    same(lambda d: (coo(d, dtype).coalesce(), coo(d, dtype).to_dense(), coo(d, dtype) + coo(d, dtype), coo(d, dtype) * 2))
    if dtype != torch.bfloat16:  # the CPU has no such product
        same(lambda d: (coo(d, dtype) @ dense(d, 4, 5).to(dtype), csr(d, dtype).to_dense()))


def test_sampled_addmm():
    a, b = dense("cpu", 3, 2), dense("cpu", 2, 4)
    got = torch.sparse.sampled_addmm(csr("tpu"), a.to("tpu"), b.to("tpu"), beta=0.5, alpha=2)
    want = (0.5 * csr("cpu").to_dense() + 2 * (a @ b)) * (csr("cpu").to_dense() != 0)
    assert got.layout == torch.sparse_csr
    torch.testing.assert_close(plain(got), want)


def test_round_trips_and_printing():
    t = coo("tpu")
    assert t.is_sparse and not t.is_coalesced() and t.device.type == "tpu" and t.coalesce().is_coalesced()
    assert t.cpu().device.type == "cpu" and "nnz=5" in repr(t) and "device='tpu:0'" in repr(t)
    assert "crow_indices" in repr(csr("tpu")) and csr("tpu").cpu().layout == torch.sparse_csr
    for value in (t, csr("tpu")):
        file = io.BytesIO()
        torch.save(value, file)
        file.seek(0)
        loaded = torch.load(file)
        assert loaded.device.type == "tpu" and loaded.layout == value.layout
        torch.testing.assert_close(plain(loaded), plain(value))


GRADIENTS = {
    "mm": lambda x, y: torch.sparse.mm(x, y),
    "matmul": lambda x, y: x @ y,
    "sum": lambda x, y: torch.sparse.sum(x, 1).to_dense() * y[0, 0],
    "softmax": lambda x, y: torch.sparse.softmax(x, 1).to_dense() @ y,
    "log_softmax": lambda x, y: torch.sparse.log_softmax(x, 0).to_dense() @ y,
    "dense": lambda x, y: x.to_dense() @ y,
}


@pytest.mark.parametrize("name", GRADIENTS)
def test_gradients(name):
    def run(device):
        x, y = coo(device).coalesce().requires_grad_(), dense(device, 4, 5).requires_grad_()
        GRADIENTS[name](x, y).pow(2).sum().backward()
        return x.grad, y.grad

    same(run)


def test_gradients_of_product_with_dense():
    def run(device):
        x, y = coo(device).coalesce().requires_grad_(), dense(device, 3, 4).requires_grad_()
        (x * y).to_dense().pow(2).sum().backward()
        return x.grad, y.grad

    same(run, layout=False)


def test_csr_gradients():
    def run(device):
        x, y = csr(device).requires_grad_(), dense(device, 4, 5).requires_grad_()
        (x @ y).pow(2).sum().backward()
        return x.grad, y.grad

    same(run, layout=False)


def test_gradient_through_conversion():
    def run(device):
        x = dense(device, 3, 4).relu().requires_grad_()
        (x.to_sparse() @ dense(device, 4, 5)).pow(2).sum().backward()
        return x.grad

    same(run)


@pytest.mark.parametrize(
    "kind,options",
    [
        (torch.optim.SGD, {"lr": 0.1}),
        (torch.optim.SGD, {"lr": 0.1, "momentum": 0.9}),
        (torch.optim.SparseAdam, {"lr": 0.1}),
        (torch.optim.Adagrad, {"lr": 0.1}),
    ],
)
def test_sparse_embedding_gradients(kind, options):
    def run(device):
        torch.manual_seed(0)
        table = torch.nn.Embedding(6, 3, sparse=True).to(device)
        optimizer = kind(table.parameters(), **options)
        for step in range(3):
            optimizer.zero_grad()
            table(torch.tensor([1, 1, 3 + step % 2], device=device)).pow(2).sum().backward()
            assert table.weight.grad.layout == torch.sparse_coo
            optimizer.step()
        return table.weight

    same(run)


@pytest.mark.parametrize("mode", ["sum", "mean"])
def test_sparse_embedding_bag_gradients(mode):
    def run(device):
        torch.manual_seed(0)
        table = torch.nn.EmbeddingBag(6, 3, sparse=True, mode=mode).to(device)
        table(torch.tensor([1, 2, 1, 5], device=device), torch.tensor([0, 2], device=device)).pow(2).sum().backward()
        return table.weight.grad

    same(run)


@pytest.mark.parametrize("call", [lambda: torch.linalg.inv(coo("tpu")), lambda: coo("tpu").cumsum(0), lambda: torch.fft.fft(csr("tpu"))])
def test_what_has_no_form_says_so(call):
    with pytest.raises((NotImplementedError, RuntimeError), match="has no form for sparse (COO|compressed) tensors on tpu; convert with .to_dense"):
        call()


@pytest.mark.parametrize(
    "call", [lambda d: coo(d) @ dense(d, 5, 2), lambda d: coo(d) + dense(d, 3, 4), lambda d: torch.sparse_coo_tensor(INDICES.to(d), VALUES.to(d), (2, 2), check_invariants=True)]
)
def test_bad_arguments(call):
    with pytest.raises(RuntimeError):
        call("cpu")
    with pytest.raises(RuntimeError):
        call("tpu")
