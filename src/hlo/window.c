// SPDX-License-Identifier: Apache-2.0
//
// Windows that move over a tensor: reduce_window and select_and_scatter.
#include <inttypes.h>

#include "hlo/graph.h"
#include "hlo/reduce.h"

tt_window tt_window_default(void) {
  tt_window w = {.size = {0}};
  for (int d = 0; d < TT_MAX_RANK; d++) {
    w.size[d] = w.stride[d] = w.base_dilation[d] = w.window_dilation[d] = 1;
  }
  return w;
}

static int64_t dilated(int64_t size, int64_t dilation) {
  return size == 0 ? 0 : (size - 1) * dilation + 1;
}

// Sizes of what a window gives over `x`.
static bool window_dims(tt_builder* b, const char* who, tt_val x, const tt_window* w, tt_type* out) {
  *out = *tt_type_of(b, x);
  if (out->bounded) {
    tt_builder_fail(b, TT_UNIMPLEMENTED, "%s: expected static sizes, got %s", who, tt_show(b, x));
    return false;
  }
  for (int d = 0; d < out->rank; d++) {
    if (w->size[d] < 1 || w->stride[d] < 1 || w->base_dilation[d] < 1 || w->window_dilation[d] < 1) {
      tt_builder_fail(b, TT_INVALID_ARGUMENT,
                      "%s: expected window sizes, strides and dilations of 1 or more in dimension %d, got %" PRId64
                      ", %" PRId64 ", %" PRId64 " and %" PRId64,
                      who, d, w->size[d], w->stride[d], w->base_dilation[d], w->window_dilation[d]);
      return false;
    }
    int64_t padded = w->pad_low[d] + dilated(out->dims[d], w->base_dilation[d]) + w->pad_high[d];
    int64_t window = dilated(w->size[d], w->window_dilation[d]);
    out->dims[d] = padded <= 0 || padded < window ? 0 : (padded - window) / w->stride[d] + 1;
  }
  return true;
}

static tt_val reduce_window(tt_builder* b, int n, const tt_val* xs, const tt_val* inits, const tt_window* w,
                            tt_body body, void* ctx, const char* key) {
  tt_type types[TT_MAX_REDUCED];
  if (!tt_check_reduced(b, "reduce_window", n, xs, inits)) {
    return TT_POISON;
  }
  for (int i = 0; i < n; i++) {
    if (!window_dims(b, "reduce_window", xs[i], w, &types[i])) {
      return TT_POISON;
    }
  }
  tt_region* region = tt_reducer(b, "reduce_window", n, xs, body, ctx);
  if (!region) {
    return TT_POISON;
  }
  tt_val operands[2 * TT_MAX_REDUCED];
  for (int i = 0; i < n; i++) {
    operands[i] = xs[i];
    operands[n + i] = inits[i];
  }
  int rank = types[0].rank;
  TT_SCOPED_TEXT(attrs);
  tt_attr_ints(&attrs, "window_dimensions", rank, w->size);
  tt_attr_ints(&attrs, "window_strides", rank, w->stride);
  tt_attr_ints(&attrs, "base_dilations", rank, w->base_dilation);
  tt_attr_ints(&attrs, "window_dilations", rank, w->window_dilation);
  tt_attr_pairs(&attrs, "padding", rank, w->pad_low, w->pad_high);
  tt_spec spec = {.mnemonic = "stablehlo.reduce_window",
                  .attrs = attrs.text,
                  .region_key = key,
                  .num_operands = 2 * n,
                  .operands = operands,
                  .num_results = n,
                  .results = types,
                  .num_regions = 1,
                  .regions = &region};
  return tt_emit(b, &spec);
}

tt_val tt_reduce_window(tt_builder* b, tt_reduce_kind kind, tt_val x, const tt_window* window) {
  if (!tt_usable(b, "reduce_window", 1, &x)) {
    return TT_POISON;
  }
  tt_val init = tt_reduce_init(b, kind, tt_dtype_of(b, x));
  return b->error ? TT_POISON : reduce_window(b, 1, &x, &init, window, tt_reduce_body, &kind, tt_reduce_name(kind));
}

void tt_reduce_window_many(tt_builder* b, int n, const tt_val* xs, const tt_val* inits, const tt_window* window,
                           tt_body body, void* ctx, tt_val* out_results) {
  tt_spread(reduce_window(b, n, xs, inits, window, body, ctx, NULL), n, out_results);
}

// ---- select_and_scatter -------------------------------------------------------------------------------------------

static void select_body(tt_builder* b, const tt_val* args, tt_val* results, void* ctx) {
  results[0] = tt_compare(b, *(const tt_cmp*)ctx, args[0], args[1]);
}

tt_val tt_select_and_scatter(tt_builder* b, tt_val x, tt_val source, tt_val init, const tt_window* w, tt_cmp select) {
  tt_val operands[] = {x, source, init};
  tt_type windows;
  if (!tt_usable(b, "select_and_scatter", 3, operands) || !tt_check_reduced(b, "select_and_scatter", 1, &x, &init) ||
      !window_dims(b, "select_and_scatter", x, w, &windows)) {
    return TT_POISON;
  }
  const tt_type* type = tt_type_of(b, x);
  for (int d = 0; d < type->rank; d++) {
    if (w->base_dilation[d] != 1 || w->window_dilation[d] != 1) {
      return tt_builder_fail(b, TT_INVALID_ARGUMENT,
                             "select_and_scatter: expected no dilation, got %" PRId64 " and %" PRId64,
                             w->base_dilation[d], w->window_dilation[d]);
    }
  }
  if (!tt_type_equal(&windows, tt_type_of(b, source))) {
    return tt_builder_fail(b, TT_INVALID_ARGUMENT, "select_and_scatter: expected a source of type %s, got %s",
                           tt_show_type(b, &windows), tt_show(b, source));
  }
  tt_type args[2] = {tt_type_scalar(type->dtype), tt_type_scalar(type->dtype)};
  tt_region* regions[2];
  tt_reduce_kind sum = TT_REDUCE_SUM;
  regions[0] = tt_region_build(b, "select_and_scatter", true, 2, args, 1, select_body, &select);
  regions[1] = tt_region_build(b, "select_and_scatter", true, 2, args, 1, tt_reduce_body, &sum);
  if (!regions[0] || !regions[1]) {
    return TT_POISON;
  }
  TT_SCOPED_TEXT(attrs);
  tt_attr_ints(&attrs, "window_dimensions", type->rank, w->size);
  tt_attr_ints(&attrs, "window_strides", type->rank, w->stride);
  tt_attr_pairs(&attrs, "padding", type->rank, w->pad_low, w->pad_high);
  tt_type result = *type;
  tt_spec spec = {.mnemonic = "stablehlo.select_and_scatter",
                  .attrs = attrs.text,
                  .num_operands = 3,
                  .operands = operands,
                  .num_results = 1,
                  .results = &result,
                  .num_regions = 2,
                  .regions = regions};
  return tt_emit(b, &spec);
}
