// SPDX-License-Identifier: Apache-2.0
//
// Sampling an image at given places (grid_sample), forward and backward, in 2 and 3 dimensions. A place's corners (or, for
// bicubic, its 4 by 4 neighbours) are gathered from the flattened image; backward adds to them by scatter.
#include "ops/pool.h"

enum { BILINEAR, NEAREST, BICUBIC };
enum { ZEROS, BORDER, REFLECTION };

typedef struct sampler {
  int spatial;
  int64_t padding;
  bool align;
  int64_t planes, batch, points, size[3], volume;  // size: width first, as the grid's last dimension counts
  tt_dtype dtype;
} sampler;

static tt_val number(tt_builder* b, const sampler* s, double v) {
  return tt_const_f(b, s->dtype, v);
}

// |x| folded into [low, high] (both doubled), and the slope of that.
static tt_val reflect(tt_builder* b, const sampler* s, tt_val x, int64_t low2, int64_t high2, tt_val* slope) {
  if (low2 == high2) {
    *slope = number(b, s, 0);
    return tt_full_like(b, x, 0);
  }
  double low = (double)low2 / 2, span = (double)(high2 - low2) / 2;
  tt_val moved = tt_add_f(b, x, -low);
  tt_val sign = tt_where(b, tt_test_f(b, TT_LT, moved, 0), number(b, s, -1), number(b, s, 1));
  tt_val size = tt_unary(b, TT_ABS, moved);
  tt_val flips = tt_unary(b, TT_FLOOR, tt_mul_f(b, size, 1 / span));
  tt_val extra = tt_sub(b, size, tt_mul_f(b, flips, span));
  tt_val half = tt_mul_f(b, flips, 0.5);
  tt_val even = tt_test(b, TT_EQ, tt_unary(b, TT_FLOOR, half), half);
  *slope = tt_where(b, even, sign, tt_neg(b, sign));
  return tt_where(b, even, tt_add_f(b, extra, low), tt_sub(b, number(b, s, span + low), extra));
}

// Folds or clips a coordinate of dimension d by the padding mode; slope is multiplied by the derivative.
static tt_val pad_place(tt_builder* b, const sampler* s, tt_val x, int d, tt_val* slope) {
  int64_t size = s->size[d];
  if (s->padding == REFLECTION) {
    tt_val turn;
    x = s->align ? reflect(b, s, x, 0, 2 * (size - 1), &turn) : reflect(b, s, x, -1, 2 * size - 1, &turn);
    *slope = tt_mul(b, *slope, turn);
  }
  if (s->padding != ZEROS) {
    tt_val outside = tt_or(b, tt_test_f(b, TT_LE, x, 0), tt_test_f(b, TT_GE, x, (double)(size - 1)));
    *slope = tt_where(b, outside, number(b, s, 0), *slope);
    x = tt_min(b, tt_max(b, x, number(b, s, 0)), number(b, s, (double)(size - 1)));
  }
  return x;
}
// From [-1, 1] to pixels.
static tt_val unnormalize(tt_builder* b, const sampler* s, tt_val g, int d, tt_val* slope) {
  double size = (double)s->size[d];
  double scale = s->align ? (size - 1) / 2 : size / 2;
  *slope = number(b, s, scale);
  tt_val from_zero = tt_add_f(b, g, 1);
  return s->align ? tt_mul_f(b, from_zero, scale) : tt_mul_f(b, tt_add_f(b, tt_mul_f(b, from_zero, size), -1), 0.5);
}

// Flat position in the volume of a whole-numbered place, and whether it is inside. [batch, points]
static tt_val flat_place(tt_builder* b, const sampler* s, const tt_val* at, tt_val* inside) {
  tt_val flat = TT_POISON;
  for (int d = s->spatial - 1; d >= 0; --d) {
    double last = (double)(s->size[d] - 1);
    tt_val in = tt_and(b, tt_test_f(b, TT_GE, at[d], 0), tt_test_f(b, TT_LE, at[d], last));
    tt_val safe = tt_where(b, in, at[d], number(b, s, 0));
    tt_val whole = tt_convert(b, safe, TT_I32);
    flat = d == s->spatial - 1 ? whole : tt_add(b, tt_mul(b, flat, tt_const_i(b, TT_I32, s->size[d])), whole);
    *inside = d == s->spatial - 1 ? in : tt_and(b, *inside, in);
  }
  return flat;
}

// [batch, points] to flat positions in all planes, [batch, planes, points].
static tt_val in_planes(tt_builder* b, const sampler* s, tt_val flat) {
  int64_t dims[3] = {s->batch, s->planes, s->points}, map[2] = {0, 2};
  tt_val wide = tt_broadcast_in_dim(b, flat, 3, dims, map);
  tt_type type = tt_type_make(TT_I32, 3, dims);
  tt_val plane = tt_add(b, tt_mul(b, tt_iota(b, &type, 0), tt_const_i(b, TT_I32, s->planes)), tt_iota(b, &type, 1));
  return tt_add(b, wide, tt_mul(b, plane, tt_const_i(b, TT_I32, s->volume)));
}

typedef struct corner {
  tt_val flat, inside;  // [batch, points]
  tt_val weight;        // [batch, points]
  tt_val slope[3];      // of the weight, by coordinate
} corner;

enum { MAX_CORNERS = 16 };

static void cubic_weights(tt_builder* b, const sampler* s, tt_val t, tt_val w[4], tt_val slope[4]) {
  double a = -0.75;
  for (int k = 0; k < 4; ++k) {
    tt_val x = tt_unary(b, TT_ABS, tt_add_f(b, t, 1 - k));
    double sign = k < 2 ? 1 : -1;
    tt_val inner = tt_add_f(b, tt_mul(b, tt_mul(b, tt_add_f(b, tt_mul_f(b, x, a + 2), -(a + 3)), x), x), 1);
    tt_val outer =
        tt_add_f(b, tt_mul(b, tt_add_f(b, tt_mul(b, tt_add_f(b, tt_mul_f(b, x, a), -5 * a), x), 8 * a), x), -4 * a);
    tt_val inner_slope = tt_mul(b, tt_add_f(b, tt_mul_f(b, x, 3 * (a + 2)), -2 * (a + 3)), x);
    tt_val outer_slope = tt_add_f(b, tt_mul(b, tt_add_f(b, tt_mul_f(b, x, 3 * a), -10 * a), x), 8 * a);
    bool near = k == 1 || k == 2;
    w[k] = near ? inner : outer;
    slope[k] = tt_mul_f(b, near ? inner_slope : outer_slope, sign);
  }
  (void)s;
}

// The corners of every place: grid is [batch, points, spatial].
static int make_corners(tt_builder* b, const sampler* s, tt_val grid, int64_t mode, corner* out) {
  tt_val at[3], slope[3], whole[3], part[3];
  for (int d = 0; d < s->spatial; ++d) {
    at[d] = unnormalize(b, s, tt_index_dim(b, grid, 2, d), d, &slope[d]);
    if (mode != BICUBIC) {
      at[d] = pad_place(b, s, at[d], d, &slope[d]);
    }
    whole[d] = tt_unary(b, mode == NEAREST ? TT_ROUND_EVEN : TT_FLOOR, at[d]);
    part[d] = tt_sub(b, at[d], whole[d]);
  }
  if (mode == NEAREST) {
    out[0].flat = flat_place(b, s, whole, &out[0].inside);
    out[0].weight = number(b, s, 1);
    for (int d = 0; d < 3; ++d) {
      out[0].slope[d] = number(b, s, 0);
    }
    return 1;
  }
  int taps = mode == BICUBIC ? 4 : 2, n = 0;
  tt_val w[3][4], dw[3][4];
  for (int d = 0; d < s->spatial; ++d) {
    if (mode == BICUBIC) {
      cubic_weights(b, s, part[d], w[d], dw[d]);
    } else {
      w[d][0] = tt_sub(b, number(b, s, 1), part[d]);
      w[d][1] = part[d];
      dw[d][0] = number(b, s, -1);
      dw[d][1] = number(b, s, 1);
    }
  }
  int total = 1;
  for (int d = 0; d < s->spatial; ++d) {
    total *= taps;
  }
  for (; n < total; ++n) {
    corner* c = &out[n];
    tt_val place[3];
    int digit[3], rest = n;
    for (int d = 0; d < s->spatial; ++d) {
      digit[d] = rest % taps;
      rest /= taps;
      place[d] = tt_add_f(b, whole[d], digit[d] - (mode == BICUBIC ? 1 : 0));
      if (mode == BICUBIC) {
        tt_val unused = number(b, s, 1);
        place[d] = pad_place(b, s, place[d], d, &unused);
        // Reflection about half pixels gives whole numbers up to rounding.
        place[d] = tt_unary(b, TT_ROUND_EVEN, place[d]);
      }
    }
    c->flat = flat_place(b, s, place, &c->inside);
    c->weight = w[0][digit[0]];
    for (int d = 1; d < s->spatial; ++d) {
      c->weight = tt_mul(b, c->weight, w[d][digit[d]]);
    }
    for (int d = 0; d < s->spatial; ++d) {
      tt_val part_slope = tt_mul(b, dw[d][digit[d]], slope[d]);
      for (int e = 0; e < s->spatial; ++e) {
        part_slope = e == d ? part_slope : tt_mul(b, part_slope, w[e][digit[e]]);
      }
      c->slope[d] = part_slope;
    }
  }
  return n;
}

static sampler read_sampler(tt_lower* L, int input, int grid, int mode, int spatial) {
  const int64_t* in = tt_arg_info(L, input)->sizes;
  const int64_t* g = tt_arg_info(L, grid)->sizes;
  sampler s = {.spatial = spatial, .padding = tt_arg_int(L, mode + 1), .align = tt_arg_bool(L, mode + 2)};
  s.dtype = tt_dtype_compute(tt_arg_info(L, input)->dtype);
  s.batch = in[0];
  s.planes = in[1];
  s.points = 1;
  s.volume = 1;
  for (int d = 0; d < spatial; ++d) {
    s.size[spatial - 1 - d] = in[2 + d];
    s.volume *= in[2 + d];
    s.points *= g[1 + d];
  }
  return s;
}
static tt_val flat_grid(tt_lower* L, tt_builder* b, const sampler* s, int grid) {
  int64_t dims[3] = {s->batch, s->points, s->spatial};
  return tt_reshape(b, tt_arg_as(L, grid, s->dtype), 3, dims);
}
static tt_val take_corner(tt_builder* b, const sampler* s, tt_val flat_image, const corner* c) {
  int64_t dims[3] = {s->batch, s->planes, s->points};
  tt_val at = tt_flatten(b, in_planes(b, s, c->flat));
  return tt_reshape(b, tt_pool_take(b, flat_image, 0, at), 3, dims);
}
static tt_val over_planes(tt_builder* b, tt_val v) {
  return tt_rank_of(b, v) == 0 ? v : tt_unsqueeze(b, v, 1);
}

static void grid_sampler(tt_lower* L, tt_builder* b, int spatial) {
  sampler s = read_sampler(L, 0, 1, 2, spatial);
  const tt_type* to = tt_out_type(L, 0);
  if (tt_type_elements(to) == 0) {
    tt_pool_empty(L, b);
    return;
  }
  corner corners[MAX_CORNERS];
  int n = make_corners(b, &s, flat_grid(L, b, &s, 1), tt_arg_int(L, 2), corners);
  tt_val image = tt_flatten(b, tt_arg_as(L, 0, s.dtype));
  tt_val sum = TT_POISON;
  for (int k = 0; k < n; ++k) {
    tt_val v = tt_mul(b, take_corner(b, &s, image, &corners[k]), over_planes(b, corners[k].weight));
    v = tt_where(b, over_planes(b, corners[k].inside), v, number(b, &s, 0));
    sum = k == 0 ? v : tt_add(b, sum, v);
  }
  tt_out(L, 0, tt_reshape(b, sum, to->rank, to->dims));
}
TT_OP(grid_sampler_2d,
      "grid_sampler_2d(Tensor input, Tensor grid, int interpolation_mode, int padding_mode, bool align_corners) -> "
      "Tensor") {
  grid_sampler(L, b, 2);
}
TT_OP(grid_sampler_3d,
      "grid_sampler_3d(Tensor input, Tensor grid, int interpolation_mode, int padding_mode, bool align_corners) -> "
      "Tensor") {
  grid_sampler(L, b, 3);
}

static void grid_sampler_backward(tt_lower* L, tt_builder* b, int spatial) {
  sampler s = read_sampler(L, 1, 2, 3, spatial);
  const tt_type* image_type = tt_out_type(L, 0);
  if (s.volume * s.batch * s.planes * s.points == 0) {
    tt_pool_empty(L, b);
    return;
  }
  corner corners[MAX_CORNERS];
  int n = make_corners(b, &s, flat_grid(L, b, &s, 2), tt_arg_int(L, 3), corners);
  int64_t dims[3] = {s.batch, s.planes, s.points};
  tt_val grad = tt_reshape(b, tt_arg_as(L, 0, s.dtype), 3, dims);
  tt_val image = tt_flatten(b, tt_arg_as(L, 1, s.dtype));
  tt_val zero = number(b, &s, 0);
  tt_val to_image = TT_POISON, to_grid[3] = {TT_POISON, TT_POISON, TT_POISON};
  for (int k = 0; k < n; ++k) {
    tt_val inside = over_planes(b, corners[k].inside);
    if (tt_out_wanted(L, 0)) {
      tt_type flat_type = tt_type_make(s.dtype, 3, (int64_t[3]){s.batch, s.planes, s.volume});
      tt_val g = tt_where(b, inside, tt_mul(b, grad, over_planes(b, corners[k].weight)), zero);
      int64_t map[2] = {0, 2};
      tt_val at = tt_broadcast_in_dim(b, corners[k].flat, 3, dims, map);
      tt_val part = tt_pool_scatter(b, g, at, 1, &flat_type, true);
      to_image = k == 0 ? part : tt_add(b, to_image, part);
    }
    tt_val v = tt_where(b, inside, tt_mul(b, grad, take_corner(b, &s, image, &corners[k])), zero);
    int64_t planes = 1;
    v = tt_reduce(b, TT_REDUCE_SUM, v, 1, &planes);
    for (int d = 0; d < spatial; ++d) {
      tt_val part = tt_mul(b, v, corners[k].slope[d]);
      to_grid[d] = k == 0 ? part : tt_add(b, to_grid[d], part);
    }
  }
  if (tt_out_wanted(L, 0)) {
    tt_out(L, 0, tt_reshape(b, to_image, image_type->rank, image_type->dims));
  }
  if (tt_out_wanted(L, 1)) {
    const tt_type* grid_type = tt_out_type(L, 1);
    for (int d = 0; d < spatial; ++d) {
      to_grid[d] = tt_unsqueeze(b, to_grid[d], -1);
    }
    tt_out(L, 1, tt_reshape(b, tt_concat(b, spatial, to_grid, 2), grid_type->rank, grid_type->dims));
  }
}
TT_OP(grid_sampler_2d_backward,
      "grid_sampler_2d_backward(Tensor grad_output, Tensor input, Tensor grid, int interpolation_mode, "
      "int padding_mode, bool align_corners, bool[2] output_mask) -> (Tensor, Tensor)") {
  grid_sampler_backward(L, b, 2);
}
TT_OP(grid_sampler_3d_backward,
      "grid_sampler_3d_backward(Tensor grad_output, Tensor input, Tensor grid, int interpolation_mode, "
      "int padding_mode, bool align_corners, bool[2] output_mask) -> (Tensor, Tensor)") {
  grid_sampler_backward(L, b, 3);
}
