// SPDX-License-Identifier: Apache-2.0
//
// Ops that run on the CPU, each with its reason.
#include "ops/op.h"

TT_FALLBACK(linalg_eig, "linalg_eig(Tensor self) -> (Tensor eigenvalues, Tensor eigenvectors)",
            "general eigenvalues have no StableHLO form");
TT_FALLBACK(linalg_eigvals, "_linalg_eigvals(Tensor self) -> Tensor", "general eigenvalues have no StableHLO form");
TT_FALLBACK(linalg_ldl_factor,
            "linalg_ldl_factor_ex(Tensor self, *, bool hermitian=False, bool check_errors=False) -> (Tensor LD, Tensor "
            "pivots, Tensor info)",
            "Bunch-Kaufman pivots of one or two rows, chosen by the data at each step; no StableHLO form");
TT_FALLBACK(linalg_ldl_solve, "linalg_ldl_solve(Tensor LD, Tensor pivots, Tensor B, *, bool hermitian=False) -> Tensor",
            "solves with LAPACK's packed factors, which are made on the CPU");
TT_FALLBACK(linalg_lstsq,
            "linalg_lstsq(Tensor self, Tensor b, float? rcond=None, *, str? driver=None) -> (Tensor solution, Tensor "
            "residuals, Tensor rank, Tensor singular_values)",
            "which results are empty depends on the rank that a LAPACK driver finds");
TT_FALLBACK(histogramdd_bin_edges,
            "_histogramdd_bin_edges(Tensor self, int[] bins, *, float[]? range=None, Tensor? weight=None, bool "
            "density=False) -> Tensor[]",
            "returns a list of edges made on the host");
TT_FALLBACK(histogramdd_from_bin_cts,
            "_histogramdd_from_bin_cts(Tensor self, int[] bins, *, float[]? range=None, Tensor? weight=None, bool "
            "density=False) -> Tensor",
            "counts between the edges of _histogramdd_bin_edges, which are on the host");
TT_FALLBACK(hash_tensor, "hash_tensor(Tensor self, int[1] dim=[], *, bool keepdim=False, int mode=0) -> Tensor",
            "a checksum of the host's bit patterns, for debugging");
TT_FALLBACK(histogram,
            "histogram.bin_ct(Tensor self, int bins=100, *, float[]? range=None, Tensor? weight=None, bool "
            "density=False) -> (Tensor hist, Tensor bin_edges)",
            "edges are made on the host; histc has a form for tpu");
