// SPDX-License-Identifier: Apache-2.0
//
// Gather and scatter. Both describe a window of the operand by the same numbers (tt_gather_dims).
#include <inttypes.h>

#include "hlo/graph.h"

static uint32_t bits_of(int n, const int64_t* axes) {
  uint32_t bits = 0;
  for (int i = 0; i < n; i++) {
    bits |= UINT32_C(1) << axes[i];
  }
  return bits;
}

static bool is_sorted(int n, const int64_t* values) {
  for (int i = 1; i < n; i++) {
    if (values[i - 1] >= values[i]) {
      return false;
    }
  }
  return true;
}

// Checks of the operand and the indices, which gather and scatter have in common.
static bool check_dims(tt_builder* b, const char* who, tt_val x, tt_val indices, const tt_gather_dims* g) {
  const tt_type *tx = tt_type_of(b, x), *ti = tt_type_of(b, indices);
  if (!tt_dtype_is_integral(ti->dtype)) {
    tt_builder_fail(b, TT_INVALID_ARGUMENT, "%s: expected integer indices, got %s", who, tt_show(b, indices));
    return false;
  }
  if (tx->bounded || ti->bounded) {
    tt_builder_fail(b, TT_UNIMPLEMENTED, "%s: expected static sizes, got %s and %s", who, tt_show(b, x),
                    tt_show(b, indices));
    return false;
  }
  if (g->index_vector_dim < 0 || g->index_vector_dim > ti->rank) {
    tt_builder_fail(b, TT_INVALID_ARGUMENT, "%s: expected an index vector dimension in [0, %d], got %" PRId64, who,
                    ti->rank, g->index_vector_dim);
    return false;
  }
  int64_t components = g->index_vector_dim < ti->rank ? ti->dims[g->index_vector_dim] : 1;
  if (g->num_start_map != components) {
    tt_builder_fail(b, TT_INVALID_ARGUMENT, "%s: expected index vectors of size %d, got %" PRId64 " in %s", who,
                    g->num_start_map, components, tt_show(b, indices));
    return false;
  }
  if (!tt_check_axes(b, who, "collapsed", g->num_collapsed, g->collapsed, tx->rank) ||
      !tt_check_axes(b, who, "operand batch", g->num_operand_batch, g->operand_batch, tx->rank) ||
      !tt_check_axes(b, who, "indices batch", g->num_operand_batch, g->indices_batch, ti->rank) ||
      !tt_check_axes(b, who, "start map", g->num_start_map, g->start_map, tx->rank)) {
    return false;
  }
  uint32_t collapsed = bits_of(g->num_collapsed, g->collapsed), batch = bits_of(g->num_operand_batch, g->operand_batch);
  if ((collapsed & batch) || (batch & bits_of(g->num_start_map, g->start_map))) {
    tt_builder_fail(b, TT_INVALID_ARGUMENT,
                    "%s: expected operand batch dimensions apart from collapsed and indexed ones, got %s", who,
                    tt_show_ints(b, g->num_operand_batch, g->operand_batch));
    return false;
  }
  if (!is_sorted(g->num_collapsed, g->collapsed) || !is_sorted(g->num_operand_batch, g->operand_batch) ||
      !is_sorted(g->num_offset, g->offset)) {
    tt_builder_fail(b, TT_INVALID_ARGUMENT,
                    "%s: expected offset, collapsed and operand batch dimensions in rising order", who);
    return false;
  }
  for (int i = 0; i < g->num_operand_batch; i++) {
    if (g->indices_batch[i] == g->index_vector_dim || ti->dims[g->indices_batch[i]] != tx->dims[g->operand_batch[i]]) {
      tt_builder_fail(b, TT_INVALID_ARGUMENT,
                      "%s: expected equal batch sizes, got dimension %" PRId64 " of %s and %" PRId64 " of %s", who,
                      g->operand_batch[i], tt_show(b, x), g->indices_batch[i], tt_show(b, indices));
      return false;
    }
  }
  int windowed = tx->rank - g->num_collapsed - g->num_operand_batch;
  if (g->num_offset != windowed) {
    tt_builder_fail(b, TT_INVALID_ARGUMENT, "%s: expected %d offset dimensions, got %d", who, windowed, g->num_offset);
    return false;
  }
  return true;
}

// The operand dimensions that a window walks, in order.
static int window_axes(const tt_type* tx, const tt_gather_dims* g, int* out) {
  uint32_t absent = bits_of(g->num_collapsed, g->collapsed) | bits_of(g->num_operand_batch, g->operand_batch);
  int n = 0;
  for (int d = 0; d < tx->rank; d++) {
    if (!((absent >> d) & 1)) {
      out[n++] = d;
    }
  }
  return n;
}

// The rank of the result of a gather, which is that of a scatter's updates.
static int result_rank(const tt_type* ti, const tt_gather_dims* g) {
  return g->num_offset + ti->rank - (g->index_vector_dim < ti->rank ? 1 : 0);
}

tt_val tt_gather(tt_builder* b, tt_val x, tt_val indices, const tt_gather_dims* g, const int64_t* slice_sizes) {
  tt_val operands[] = {x, indices};
  if (!tt_usable(b, "gather", 2, operands) || !check_dims(b, "gather", x, indices, g)) {
    return TT_POISON;
  }
  const tt_type *tx = tt_type_of(b, x), *ti = tt_type_of(b, indices);
  uint32_t single = bits_of(g->num_collapsed, g->collapsed) | bits_of(g->num_operand_batch, g->operand_batch);
  for (int d = 0; d < tx->rank; d++) {
    if (slice_sizes[d] < 0 || slice_sizes[d] > tx->dims[d] || (((single >> d) & 1) && slice_sizes[d] > 1)) {
      return tt_builder_fail(b, TT_INVALID_ARGUMENT,
                             "gather: expected slice sizes within %s and of 1 where collapsed, got %s", tt_show(b, x),
                             tt_show_ints(b, tx->rank, slice_sizes));
    }
  }
  tt_type type = {.dtype = tx->dtype, .rank = result_rank(ti, g)};
  if (type.rank > TT_MAX_RANK) {
    return tt_builder_fail(b, TT_INVALID_ARGUMENT, "gather: expected at most %d result dimensions, got %d", TT_MAX_RANK,
                           type.rank);
  }
  if (!tt_check_axes(b, "gather", "offset", g->num_offset, g->offset, type.rank)) {
    return TT_POISON;
  }
  int walked[TT_MAX_RANK];
  window_axes(tx, g, walked);
  uint32_t offsets = bits_of(g->num_offset, g->offset);
  for (int d = 0, next_window = 0, next_index = 0; d < type.rank; d++) {
    if ((offsets >> d) & 1) {
      type.dims[d] = slice_sizes[walked[next_window++]];
      continue;
    }
    next_index += next_index == g->index_vector_dim ? 1 : 0;
    type.dims[d] = ti->dims[next_index++];
  }
  TT_SCOPED_TEXT(numbers);
  tt_attr_list(&numbers, "offset_dims", g->num_offset, g->offset);
  tt_attr_list(&numbers, "collapsed_slice_dims", g->num_collapsed, g->collapsed);
  tt_attr_list(&numbers, "operand_batching_dims", g->num_operand_batch, g->operand_batch);
  tt_attr_list(&numbers, "start_indices_batching_dims", g->num_operand_batch, g->indices_batch);
  tt_attr_list(&numbers, "start_index_map", g->num_start_map, g->start_map);
  TT_ATTR(&numbers, "index_vector_dim = %" PRId64, g->index_vector_dim);
  TT_SCOPED_TEXT(attrs);
  TT_ATTR(&attrs, "dimension_numbers = #stablehlo.gather<%s>", numbers.text);
  tt_attr_ints(&attrs, "slice_sizes", tx->rank, slice_sizes);
  TT_ATTR(&attrs, "indices_are_sorted = %s", g->sorted ? "true" : "false");
  return tt_emit1(b, "stablehlo.gather", attrs.text, 2, operands, &type);
}

static bool check_updates(tt_builder* b, tt_val x, tt_val indices, tt_val updates, const tt_gather_dims* g) {
  const tt_type *tx = tt_type_of(b, x), *ti = tt_type_of(b, indices), *tu = tt_type_of(b, updates);
  bool fits = tu->dtype == tx->dtype && tu->rank == result_rank(ti, g) && !tu->bounded;
  if (fits && !tt_check_axes(b, "scatter", "offset", g->num_offset, g->offset, tu->rank)) {
    return false;
  }
  int walked[TT_MAX_RANK];
  window_axes(tx, g, walked);
  uint32_t offsets = fits ? bits_of(g->num_offset, g->offset) : 0;
  for (int d = 0, next_window = 0, next_index = 0; fits && d < tu->rank; d++) {
    if ((offsets >> d) & 1) {
      fits = tu->dims[d] <= tx->dims[walked[next_window++]];
      continue;
    }
    next_index += next_index == g->index_vector_dim ? 1 : 0;
    fits = tu->dims[d] == ti->dims[next_index++];
  }
  if (!fits) {
    tt_builder_fail(b, TT_INVALID_ARGUMENT, "scatter: expected updates that match %s by indices %s, got %s",
                    tt_show(b, x), tt_show(b, indices), tt_show(b, updates));
  }
  return fits;
}

tt_val tt_scatter(tt_builder* b, tt_val x, tt_val indices, tt_val updates, const tt_gather_dims* g, tt_body body,
                  void* ctx) {
  tt_val operands[] = {x, indices, updates};
  if (!tt_usable(b, "scatter", 3, operands) || !check_dims(b, "scatter", x, indices, g) ||
      !check_updates(b, x, indices, updates, g)) {
    return TT_POISON;
  }
  tt_type type = *tt_type_of(b, x);
  tt_type args[2] = {tt_type_scalar(type.dtype), tt_type_scalar(type.dtype)};
  tt_region* region = tt_region_build(b, "scatter", true, 2, args, 1, body, ctx);
  if (!region) {
    return TT_POISON;
  }
  if (!tt_type_equal(tt_type_of(b, region->results[0]), &args[0])) {
    return tt_builder_fail(b, TT_INVALID_ARGUMENT, "scatter: expected the region to give %s, got %s",
                           tt_show_type(b, &args[0]), tt_show(b, region->results[0]));
  }
  TT_SCOPED_TEXT(numbers);
  tt_attr_list(&numbers, "update_window_dims", g->num_offset, g->offset);
  tt_attr_list(&numbers, "inserted_window_dims", g->num_collapsed, g->collapsed);
  tt_attr_list(&numbers, "input_batching_dims", g->num_operand_batch, g->operand_batch);
  tt_attr_list(&numbers, "scatter_indices_batching_dims", g->num_operand_batch, g->indices_batch);
  tt_attr_list(&numbers, "scatter_dims_to_operand_dims", g->num_start_map, g->start_map);
  TT_ATTR(&numbers, "index_vector_dim = %" PRId64, g->index_vector_dim);
  TT_SCOPED_TEXT(attrs);
  TT_ATTR(&attrs, "scatter_dimension_numbers = #stablehlo.scatter<%s>", numbers.text);
  TT_ATTR(&attrs, "indices_are_sorted = %s, unique_indices = %s", g->sorted ? "true" : "false",
          g->unique ? "true" : "false");
  tt_spec spec = {.mnemonic = "stablehlo.scatter",
                  .attrs = attrs.text,
                  .num_operands = 3,
                  .operands = operands,
                  .num_results = 1,
                  .results = &type,
                  .num_regions = 1,
                  .regions = &region};
  return tt_emit(b, &spec);
}
