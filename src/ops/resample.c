// SPDX-License-Identifier: Apache-2.0
//
// Resizing images. Every mode is linear and works on one dimension after the other: result element o is a weighted sum of a few
// input elements ("taps"). A table of taps is made here for each dimension, in the arithmetic PyTorch uses; forward gathers
// them, backward multiplies by the table as a matrix.
#include <math.h>
#include <stdlib.h>

#include "base/mem.h"
#include "ops/pool.h"

typedef enum mode { NEAREST, NEAREST_EXACT, LINEAR, CUBIC, LINEAR_AA, CUBIC_AA, LANCZOS_AA } mode;

typedef struct taps {
  int64_t in, out, count;  // count taps an element
  int32_t* index;          // [out, count]
  double* weight;          // [out, count]
  bool same;               // the identity
} taps;

static double as_float(double x, bool wide) {
  return wide ? x : (double)(float)x;
}

static double scale_of(int64_t in, int64_t out, bool align, double given, bool wide) {
  if (align) {
    return out > 1 ? as_float((double)(in - 1) / (double)(out - 1), wide) : 0;
  }
  return as_float(given > 0 ? 1 / given : as_float((double)in, wide) / (double)out, wide);
}
static double source_of(double scale, int64_t o, bool align, bool cubic, bool wide) {
  if (align) {
    return as_float(scale * (double)o, wide);
  }
  double at = as_float(as_float(scale * ((double)o + 0.5), wide) - 0.5, wide);
  return at < 0 && !cubic ? 0 : at;
}
static int64_t clamp(int64_t i, int64_t size) {
  return i < 0 ? 0 : i >= size ? size - 1 : i;
}

static double cubic(double x, double a) {
  x = fabs(x);
  if (x < 1) {
    return ((a + 2) * x - (a + 3)) * x * x + 1;
  }
  return x < 2 ? ((a * x - 5 * a) * x + 8 * a) * x - 4 * a : 0;
}
static double sinc(double x) {
  return x == 0 ? 1 : sin(3.141592653589793 * x) / (3.141592653589793 * x);
}
static double filter(mode m, double x) {
  if (m == LINEAR_AA) {
    return fabs(x) < 1 ? 1 - fabs(x) : 0;
  }
  return m == CUBIC_AA ? cubic(x, -0.5) : fabs(x) < 3 ? sinc(x) * sinc(x / 3) : 0;
}

// Antialiased: the filter widens when the image shrinks.
static void antialiased_taps(taps* t, mode m, double scale) {
  double size = m == LINEAR_AA ? 2 : m == CUBIC_AA ? 4 : 6;
  double support = scale >= 1 ? size * 0.5 * scale : size * 0.5;
  double inverse = scale >= 1 ? 1 / scale : 1;
  for (int64_t o = 0; o < t->out; ++o) {
    double centre = scale * ((double)o + 0.5);
    int64_t first = (int64_t)(centre - support + 0.5);
    first = first < 0 ? 0 : first;
    int64_t end = (int64_t)(centre + support + 0.5);
    end = end > t->in ? t->in : end;
    double total = 0;
    for (int64_t j = 0; j < t->count; ++j) {
      bool inside = first + j < end;
      double w = inside ? filter(m, ((double)(first + j) - centre + 0.5) * inverse) : 0;
      t->index[o * t->count + j] = (int32_t)clamp(first + j, t->in);
      t->weight[o * t->count + j] = w;
      total += w;
    }
    for (int64_t j = 0; j < t->count && total != 0; ++j) {
      t->weight[o * t->count + j] /= total;
    }
  }
}

static taps make_taps(mode m, int64_t in, int64_t out, bool align, double given, bool wide) {
  double scale = m <= NEAREST_EXACT ? scale_of(in, out, false, given, wide) : scale_of(in, out, align, given, wide);
  double size = m == LINEAR_AA ? 2 : m == CUBIC_AA ? 4 : 6;
  int64_t widest = (int64_t)ceil(scale >= 1 ? size * 0.5 * scale : size * 0.5) * 2 + 1;
  int64_t counts[] = {1, 1, 2, 4, widest, widest, widest};
  taps t = {.in = in, .out = out, .count = counts[m]};
  size_t n = (size_t)(out * t.count);
  t.index = tt_calloc(n > 0 ? n : 1, sizeof *t.index);
  t.weight = tt_calloc(n > 0 ? n : 1, sizeof *t.weight);
  if (m >= LINEAR_AA) {
    antialiased_taps(&t, m, scale);
    return t;
  }
  for (int64_t o = 0; o < out; ++o) {
    int32_t* index = t.index + o * t.count;
    double* weight = t.weight + o * t.count;
    if (m == NEAREST || m == NEAREST_EXACT) {
      double at = as_float(((double)o + (m == NEAREST ? 0 : 0.5)) * scale, wide);
      index[0] = (int32_t)clamp((int64_t)floor(at), in);
      weight[0] = 1;
      continue;
    }
    double at = in == out && m == LINEAR ? (double)o : source_of(scale, o, align, m == CUBIC, wide);
    int64_t first = (int64_t)floor(at);
    first = first > in - 1 ? in - 1 : first;
    double part = as_float(at - (double)first, wide);
    part = part < 0 ? 0 : part > 1 ? 1 : part;
    if (m == LINEAR) {
      index[0] = (int32_t)first;
      index[1] = (int32_t)(first < in - 1 ? first + 1 : first);
      weight[0] = as_float(1 - part, wide);
      weight[1] = part;
    } else {
      for (int j = 0; j < 4; ++j) {
        index[j] = (int32_t)clamp(first - 1 + j, in);
        weight[j] = cubic(part - (double)(j - 1), -0.75);
      }
    }
  }
  return t;
}
// For images of bytes the CPU's weights are 16-bit integers with as many binary digits as the largest leaves room for.
static void round_weights(taps* t) {
  double most = 0;
  for (int64_t i = 0; i < t->out * t->count; ++i) {
    most = t->weight[i] > most ? t->weight[i] : most;
  }
  int digits = 0;
  while (digits < 22 && 0.5 + ldexp(most, digits + 1) < 0x1p15) {
    digits += 1;
  }
  for (int64_t i = 0; i < t->out * t->count; ++i) {
    double w = ldexp(t->weight[i], digits);
    t->weight[i] = ldexp(trunc(w + (w < 0 ? -0.5 : 0.5)), -digits);
  }
}
static void free_taps(taps* t) {
  free(t->index);
  free(t->weight);
}

// Column k of the tables, [out].
static tt_val index_column(tt_builder* b, const taps* t, int64_t k) {
  int64_t* column = tt_calloc((size_t)t->out, sizeof *column);
  for (int64_t o = 0; o < t->out; ++o) {
    column[o] = t->index[o * t->count + k];
  }
  tt_val v = tt_const_ints(b, TT_I32, t->out, column);
  free(column);
  return v;
}
static tt_val weight_column(tt_builder* b, const taps* t, int64_t k, tt_dtype dtype) {
  float* narrow = tt_calloc((size_t)t->out, sizeof *narrow);
  double* wide = tt_calloc((size_t)t->out, sizeof *wide);
  for (int64_t o = 0; o < t->out; ++o) {
    wide[o] = t->weight[o * t->count + k];
    narrow[o] = (float)wide[o];
  }
  tt_type type = tt_type_make(dtype, 1, &t->out);
  tt_val v = tt_const_bytes(b, &type, dtype == TT_F64 ? (const void*)wide : (const void*)narrow);
  free(narrow);
  free(wide);
  return v;
}
static tt_val along(tt_builder* b, tt_val column, int rank, int dim) {
  for (int d = dim + 1; d < rank; ++d) {
    column = tt_unsqueeze(b, column, -1);
  }
  return column;
}

static tt_val forward_dim(tt_builder* b, tt_val x, int dim, const taps* t, bool weighted) {
  tt_val sum = TT_POISON;
  for (int64_t k = 0; k < t->count; ++k) {
    tt_val taken = tt_pool_take(b, x, dim, index_column(b, t, k));
    if (weighted) {
      tt_val w = along(b, weight_column(b, t, k, tt_dtype_of(b, x)), tt_rank_of(b, x), dim);
      // A tap of weight 0 must not bring in an infinity.
      tt_val zero = tt_like_f(b, w, 0);
      taken = tt_where(b, tt_test(b, TT_EQ, w, zero), zero, tt_mul(b, w, taken));
    }
    sum = k == 0 ? taken : tt_add(b, sum, taken);
  }
  return sum;
}
static tt_val backward_dim(tt_builder* b, tt_val g, int dim, const taps* t) {
  tt_dtype dtype = tt_dtype_of(b, g);
  int64_t dims[2] = {t->out, t->in};
  tt_type type = tt_type_make(TT_I32, 2, dims);
  tt_val place = tt_iota(b, &type, 1);
  tt_val matrix = TT_POISON;
  for (int64_t k = 0; k < t->count; ++k) {
    tt_val here = tt_test(b, TT_EQ, place, tt_unsqueeze(b, index_column(b, t, k), 1));
    tt_val w = tt_unsqueeze(b, weight_column(b, t, k, dtype), 1);
    tt_val part = tt_where(b, here, w, tt_const_f(b, dtype, 0));
    matrix = k == 0 ? part : tt_add(b, matrix, part);
  }
  int64_t contract = dim, rows = 0;
  tt_val moved = tt_dot_general(b, g, matrix, 0, NULL, NULL, 1, &contract, &rows, dtype);
  // The new dimension is last: put it in place.
  int64_t perm[TT_MAX_RANK];
  int rank = tt_rank_of(b, g);
  for (int d = 0; d < rank; ++d) {
    perm[d] = d < dim ? d : d == dim ? rank - 1 : d - 1;
  }
  return tt_transpose(b, moved, perm);
}

static void resample(tt_lower* L, tt_builder* b, mode m, int spatial, bool backward) {
  const tt_type* to = tt_out_type(L, 0);
  bool aligns = m >= LINEAR;
  int scales = (backward ? 3 : 2) + (aligns ? 1 : 0);
  bool align = aligns && tt_arg_bool(L, scales - 1);
  tt_dtype own = tt_arg_info(L, 0)->dtype;
  bool plain = m <= NEAREST_EXACT && !backward;
  tt_dtype dtype = plain ? own : own == TT_F64 ? TT_F64 : TT_F32;
  tt_val x = tt_arg_as(L, 0, dtype);
  if (tt_type_elements(to) == 0) {
    tt_pool_empty(L, b);
    return;
  }
  for (int d = spatial - 1; d >= 0; --d) {
    double given = tt_arg_has(L, scales + d) ? tt_arg_float(L, scales + d) : 0;
    int dim = to->rank - spatial + d;
    int64_t in = backward ? to->dims[dim] : tt_dim_of(b, x, dim);
    int64_t out = backward ? tt_dim_of(b, x, dim) : to->dims[dim];
    taps t = make_taps(m, in, out, align, given, own == TT_F64);
    if (m >= LINEAR && tt_dtype_class(own) == 'u') {
      round_weights(&t);
    }
    x = backward ? backward_dim(b, x, dim, &t) : forward_dim(b, x, dim, &t, !plain);
    free_taps(&t);
    if (!plain && tt_dtype_class(to->dtype) == 'u') {
      // As on the CPU, images of bytes are bytes between the dimensions too.
      tt_val rounded = tt_unary(b, TT_FLOOR, tt_add_f(b, x, 0.5));
      x = tt_min(b, tt_max(b, rounded, tt_like_f(b, x, 0)), tt_like_f(b, x, 255));
    }
  }
  tt_out(L, 0, x);
}

#define RESAMPLE(id, name, m, spatial, align, scales)                                             \
  TT_OP(id, name "(Tensor self, SymInt[" #spatial "] output_size, " align scales ") -> Tensor") { \
    resample(L, b, m, spatial, false);                                                            \
  }
#define RESAMPLE_BACKWARD(id, name, m, spatial, full, align, scales)                             \
  TT_OP(id, name "_backward(Tensor grad_output, SymInt[" #spatial "] output_size, SymInt[" #full \
                 "] input_size, " align scales ") -> Tensor") {                                  \
    resample(L, b, m, spatial, true);                                                            \
  }
#define RESAMPLE_BOTH(id, name, m, spatial, full, align, scales) \
  RESAMPLE(id, name, m, spatial, align, scales)                  \
  RESAMPLE_BACKWARD(id##_backward, name, m, spatial, full, align, scales)
#define ALIGN "bool align_corners, "
#define SCALES1 "float? scales=None"
#define SCALES2 "float? scales_h=None, float? scales_w=None"
#define SCALES3 "float? scales_d=None, float? scales_h=None, float? scales_w=None"

RESAMPLE_BOTH(nearest1d, "upsample_nearest1d", NEAREST, 1, 3, "", SCALES1)
RESAMPLE_BOTH(nearest2d, "upsample_nearest2d", NEAREST, 2, 4, "", SCALES2)
RESAMPLE_BOTH(nearest3d, "upsample_nearest3d", NEAREST, 3, 5, "", SCALES3)
RESAMPLE_BOTH(nearest_exact1d, "_upsample_nearest_exact1d", NEAREST_EXACT, 1, 3, "", SCALES1)
RESAMPLE_BOTH(nearest_exact2d, "_upsample_nearest_exact2d", NEAREST_EXACT, 2, 4, "", SCALES2)
RESAMPLE_BOTH(nearest_exact3d, "_upsample_nearest_exact3d", NEAREST_EXACT, 3, 5, "", SCALES3)
RESAMPLE_BOTH(linear1d, "upsample_linear1d", LINEAR, 1, 3, ALIGN, SCALES1)
RESAMPLE_BOTH(bilinear2d, "upsample_bilinear2d", LINEAR, 2, 4, ALIGN, SCALES2)
RESAMPLE_BOTH(trilinear3d, "upsample_trilinear3d", LINEAR, 3, 5, ALIGN, SCALES3)
RESAMPLE_BOTH(bicubic2d, "upsample_bicubic2d", CUBIC, 2, 4, ALIGN, SCALES2)
RESAMPLE_BOTH(bilinear2d_aa, "_upsample_bilinear2d_aa", LINEAR_AA, 2, 4, ALIGN, SCALES2)
RESAMPLE_BOTH(bicubic2d_aa, "_upsample_bicubic2d_aa", CUBIC_AA, 2, 4, ALIGN, SCALES2)
RESAMPLE(lanczos2d_aa, "_upsample_lanczos2d_aa", LANCZOS_AA, 2, ALIGN, SCALES2)
