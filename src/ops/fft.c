// SPDX-License-Identifier: Apache-2.0
//
// Fourier transforms. XLA transforms up to three last dimensions and divides the inverse by the number of points; PyTorch names the
// dimensions and the scaling.
#include <math.h>

#include "ops/op.h"

// Moves the n dimensions `dims` to the end, or back.
static tt_val move_dims(tt_builder* b, tt_val x, int n, const int64_t* dims, bool back) {
  int rank = tt_rank_of(b, x);
  int64_t order[TT_MAX_RANK], inverse[TT_MAX_RANK];
  int k = 0;
  for (int d = 0; d < rank; ++d) {
    bool named = false;
    for (int i = 0; i < n; ++i) {
      named |= tt_wrap_dim(dims[i], rank) == d;
    }
    if (!named) {
      order[k++] = d;
    }
  }
  for (int i = 0; i < n; ++i) {
    order[k++] = tt_wrap_dim(dims[i], rank);
  }
  for (int d = 0; d < rank; ++d) {
    inverse[order[d]] = d;
  }
  return tt_transpose(b, x, back ? inverse : order);
}

// What the sum over `points` is multiplied by: normalization 0 nothing, 1 by root n, 2 by n.
static tt_val scaled(tt_builder* b, tt_val x, double points, int64_t normalization, bool divided) {
  double factor = divided ? points : 1;
  factor /= normalization == 1 ? sqrt(points) : normalization == 2 ? points : 1;
  return factor == 1 ? x : tt_mul_f(b, x, factor);
}
static double points_of(tt_builder* b, tt_val x, int n, const int64_t* dims) {
  double points = 1;
  for (int i = 0; i < n; ++i) {
    points *= (double)tt_dim_of(b, x, tt_wrap_dim(dims[i], tt_rank_of(b, x)));
  }
  return points;
}

// Complex transforms over all of `dims`, three at a time.
static tt_val transform(tt_builder* b, tt_val x, int n, const int64_t* dims, bool forward) {
  for (int i = 0; i < n; i += 3) {
    int some = n - i < 3 ? n - i : 3;
    int64_t lengths[3];
    for (int k = 0; k < some; ++k) {
      lengths[k] = tt_dim_of(b, x, tt_wrap_dim(dims[i + k], tt_rank_of(b, x)));
    }
    tt_val moved = move_dims(b, x, some, dims + i, false);
    x = move_dims(b, tt_fft(b, forward ? TT_FFT : TT_IFFT, moved, some, lengths), some, dims + i, true);
  }
  return x;
}

// A result without elements is made here.
static bool nothing(tt_lower* L, tt_builder* b) {
  bool none = tt_type_elements(tt_out_type(L, 0)) == 0;
  if (none) {
    tt_out(L, 0, tt_const_i(b, tt_out_type(L, 0)->dtype, 0));
  }
  return none;
}

TT_OP(fft_c2c, "_fft_c2c(Tensor self, SymInt[] dim, int normalization, bool forward) -> Tensor") {
  int n;
  const int64_t* dims = tt_arg_ints(L, 1, &n);
  bool forward = tt_arg_bool(L, 3);
  tt_val x = tt_arg(L, 0);
  if (nothing(L, b)) {
    return;
  }
  tt_out(L, 0, scaled(b, transform(b, x, n, dims, forward), points_of(b, x, n, dims), tt_arg_int(L, 2), !forward));
}

TT_OP(fft_r2c, "_fft_r2c(Tensor self, int[] dim, int normalization, bool onesided) -> Tensor") {
  int n;
  const int64_t* dims = tt_arg_ints(L, 1, &n);
  tt_val x = tt_arg(L, 0);
  if (nothing(L, b)) {
    return;
  }
  double points = points_of(b, x, n, dims);
  tt_val y;
  if (tt_arg_bool(L, 3)) {
    int64_t length = tt_dim_of(b, x, tt_wrap_dim(dims[n - 1], tt_rank_of(b, x)));
    tt_val moved = move_dims(b, x, 1, &dims[n - 1], false);
    y = move_dims(b, tt_fft(b, TT_RFFT, moved, 1, &length), 1, &dims[n - 1], true);
    y = transform(b, y, n - 1, dims, true);
  } else {
    y = transform(b, tt_convert(b, x, tt_dtype_complex(tt_dtype_of(b, x))), n, dims, true);
  }
  tt_out(L, 0, scaled(b, y, points, tt_arg_int(L, 2), false));
}

TT_OP(fft_c2r, "_fft_c2r(Tensor self, int[] dim, int normalization, SymInt last_dim_size) -> Tensor") {
  int n;
  const int64_t* dims = tt_arg_ints(L, 1, &n);
  int64_t length = tt_arg_int(L, 3);
  if (nothing(L, b)) {
    return;
  }
  tt_val y = transform(b, tt_arg(L, 0), n - 1, dims, false);
  tt_val moved = move_dims(b, y, 1, &dims[n - 1], false);
  y = move_dims(b, tt_fft(b, TT_IRFFT, moved, 1, &length), 1, &dims[n - 1], true);
  tt_out(L, 0, scaled(b, y, points_of(b, y, n, dims), tt_arg_int(L, 2), true));
}
