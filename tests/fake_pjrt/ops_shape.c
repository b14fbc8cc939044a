// SPDX-License-Identifier: Apache-2.0
//
// Operations that make or move elements and compute nothing.
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "program.h"

// ---- constants ------------------------------------------------------------------------------------------------------------

static int hex_digit(char c) {
  return c <= '9' ? c - '0' : toupper((unsigned char)c) - 'A' + 10;
}

static void load_hex(const char* at, fake_array* out) {
  size_t size = fake_array_bytes(&out->type);
  for (size_t i = 0; i < size && isxdigit((unsigned char)at[2 * i]); ++i) {
    out->bytes[i] = (unsigned char)(hex_digit(at[2 * i]) << 4 | hex_digit(at[2 * i + 1]));
  }
}

// Parses one element at `at` into out[index]; returns what follows it.
static const char* load_element(const char* at, fake_array* out, int64_t index) {
  char* end = NULL;
  char cls = fake_dtype_class(out->type.dtype);
  fake_num n = {0, 0, 0};
  if (strncmp(at, "true", 4) == 0 || strncmp(at, "false", 5) == 0) {
    fake_store(out, index, (fake_num){.i = *at == 't'});
    return at + (*at == 't' ? 4 : 5);
  }
  if (cls == 'f' && strncmp(at, "0x", 2) == 0) {
    // The bits themselves.
    uint64_t bits = strtoull(at, &end, 16);
    size_t size = fake_dtype_size(out->type.dtype);
    memcpy(out->bytes + (size_t)index * size, &bits, size);
    return end;
  }
  if (cls == 'f') {
    n.re = strtod(at, &end);
  } else if (cls == 'u' && *at != '-') {
    n.i = (int64_t)strtoull(at, &end, 10);
  } else {
    n.i = strtoll(at, &end, 10);
  }
  fake_store(out, index, n);
  return end;
}

// A complex element is two of its real type: laid out as such.
static const char* load_complex(const char* at, fake_array* out, int64_t index) {
  tt_dtype part = out->type.dtype == TT_C64 ? TT_F32 : TT_F64;
  fake_array view = {.type = {.dtype = part}, .count = 2 * out->count, .bytes = out->bytes};
  at = load_element(at + 1, &view, 2 * index);
  at = load_element(at + strspn(at, ", "), &view, 2 * index + 1);
  return at + 1;
}

static void eval_constant(fake_run* run, const fake_op* op, fake_array* const* in, fake_array** out) {
  (void)run;
  (void)in;
  const char* at = fake_attr_find(op, "value");
  at = at != NULL && strncmp(at, "dense<", 6) == 0 ? at + 6 : "";
  if (strncmp(at, "\"0x", 3) == 0) {
    load_hex(at + 3, out[0]);
    return;
  }
  bool splat = *at != '[';
  int64_t n = 0;
  while (*at != '\0' && *at != '>' && n < out[0]->count) {
    if (strchr("[], ", *at) != NULL) {
      ++at;
      continue;
    }
    at = fake_dtype_class(out[0]->type.dtype) == 'c' ? load_complex(at, out[0], n) : load_element(at, out[0], n);
    ++n;
  }
  for (; splat && n > 0 && n < out[0]->count; ++n) {
    fake_store_raw(out[0], n, out[0], 0);
  }
}

static void eval_iota(fake_run* run, const fake_op* op, fake_array* const* in, fake_array** out) {
  (void)run;
  (void)in;
  const tt_type* type = &out[0]->type;
  int64_t dim = fake_attr_int(op, "iota_dimension", 0);
  int64_t position[TT_MAX_RANK] = {0};
  for (int64_t i = 0; i < out[0]->count; ++i) {
    fake_store(out[0], i, fake_convert((fake_num){.i = position[dim]}, TT_I64, type->dtype));
    (void)fake_next(type->rank, type->dims, position);
  }
}

static void eval_random(fake_run* run, const fake_op* op, fake_array* const* in, fake_array** out) {
  (void)run;
  (void)op;
  uint64_t state[3];
  memcpy(state, in[0]->bytes, sizeof state);
  size_t size = fake_array_bytes(&out[1]->type);
  for (size_t i = 0; i < size; ++i) {
    // Not Philox, but likewise a function of key and counter.
    uint64_t x =
        state[0] + (state[1] + i / 16) * UINT64_C(0x9E3779B97F4A7C15) + (i % 16) * UINT64_C(0xD1342543DE82EF95);
    x = (x ^ x >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
    x = (x ^ x >> 27) * UINT64_C(0x94D049BB133111EB);
    out[1]->bytes[i] = (unsigned char)(x >> 56);
  }
  state[1] += (size + 15) / 16;
  memcpy(out[0]->bytes, state, sizeof state);
}

// ---- moving elements ------------------------------------------------------------------------------------------------------

static void eval_reshape(fake_run* run, const fake_op* op, fake_array* const* in, fake_array** out) {
  (void)run;
  (void)op;
  memcpy(out[0]->bytes, in[0]->bytes, fake_array_bytes(&out[0]->type));
}

// out[p] = in[sum over d of (p[d] + start[d]) * step[d]]
static void copy_affine(fake_array* out, const fake_array* in, int64_t start, const int64_t* step) {
  int64_t position[TT_MAX_RANK] = {0};
  for (int64_t i = 0; i < out->count; ++i) {
    int64_t from = start;
    for (int d = 0; d < out->type.rank; ++d) {
      from += position[d] * step[d];
    }
    fake_store_raw(out, i, in, from);
    (void)fake_next(out->type.rank, out->type.dims, position);
  }
}

static void eval_transpose(fake_run* run, const fake_op* op, fake_array* const* in, fake_array** out) {
  (void)run;
  int64_t perm[TT_MAX_RANK] = {0};
  int64_t strides[TT_MAX_RANK];
  int64_t step[TT_MAX_RANK] = {0};
  (void)fake_attr_ints(op, "permutation", perm, TT_MAX_RANK);
  fake_strides(in[0]->type.rank, in[0]->type.dims, strides);
  for (int d = 0; d < out[0]->type.rank; ++d) {
    step[d] = strides[perm[d]];
  }
  copy_affine(out[0], in[0], 0, step);
}

static void eval_broadcast(fake_run* run, const fake_op* op, fake_array* const* in, fake_array** out) {
  (void)run;
  int64_t map[TT_MAX_RANK];
  int64_t strides[TT_MAX_RANK];
  int64_t step[TT_MAX_RANK] = {0};
  int n = fake_attr_ints(op, "broadcast_dimensions", map, TT_MAX_RANK);
  fake_strides(in[0]->type.rank, in[0]->type.dims, strides);
  for (int d = 0; d < n; ++d) {
    step[map[d]] = in[0]->type.dims[d] == 1 ? 0 : strides[d];
  }
  copy_affine(out[0], in[0], 0, step);
}

static void eval_slice(fake_run* run, const fake_op* op, fake_array* const* in, fake_array** out) {
  (void)run;
  int64_t start[TT_MAX_RANK] = {0};
  int64_t stride[TT_MAX_RANK] = {0};
  int64_t step[TT_MAX_RANK];
  (void)fake_attr_ints(op, "start_indices", start, TT_MAX_RANK);
  (void)fake_attr_ints(op, "strides", stride, TT_MAX_RANK);
  fake_strides(in[0]->type.rank, in[0]->type.dims, step);
  int64_t first = 0;
  for (int d = 0; d < out[0]->type.rank; ++d) {
    first += start[d] * step[d];
    step[d] *= stride[d];
  }
  copy_affine(out[0], in[0], first, step);
}

static int64_t clamp(int64_t value, int64_t low, int64_t high) {
  return value < low ? low : value > high ? high : value;
}

static void eval_dynamic_slice(fake_run* run, const fake_op* op, fake_array* const* in, fake_array** out) {
  (void)run;
  (void)op;
  int64_t step[TT_MAX_RANK];
  fake_strides(in[0]->type.rank, in[0]->type.dims, step);
  int64_t first = 0;
  for (int d = 0; d < out[0]->type.rank; ++d) {
    first += clamp(fake_load(in[1 + d], 0).i, 0, in[0]->type.dims[d] - out[0]->type.dims[d]) * step[d];
  }
  copy_affine(out[0], in[0], first, step);
}

static void eval_dynamic_update_slice(fake_run* run, const fake_op* op, fake_array* const* in, fake_array** out) {
  (void)run;
  (void)op;
  const tt_type* type = &in[1]->type;
  int64_t step[TT_MAX_RANK];
  int64_t position[TT_MAX_RANK] = {0};
  fake_strides(in[0]->type.rank, in[0]->type.dims, step);
  memcpy(out[0]->bytes, in[0]->bytes, fake_array_bytes(&out[0]->type));
  for (int64_t i = 0; i < in[1]->count; ++i) {
    int64_t to = 0;
    for (int d = 0; d < type->rank; ++d) {
      to += (clamp(fake_load(in[2 + d], 0).i, 0, in[0]->type.dims[d] - type->dims[d]) + position[d]) * step[d];
    }
    fake_store_raw(out[0], to, in[1], i);
    (void)fake_next(type->rank, type->dims, position);
  }
}

static void eval_pad(fake_run* run, const fake_op* op, fake_array* const* in, fake_array** out) {
  (void)run;
  const tt_type* type = &in[0]->type;
  int64_t low[TT_MAX_RANK] = {0};
  int64_t interior[TT_MAX_RANK] = {0};
  int64_t step[TT_MAX_RANK];
  int64_t position[TT_MAX_RANK] = {0};
  (void)fake_attr_ints(op, "edge_padding_low", low, TT_MAX_RANK);
  (void)fake_attr_ints(op, "interior_padding", interior, TT_MAX_RANK);
  fake_strides(type->rank, out[0]->type.dims, step);
  for (int64_t i = 0; i < out[0]->count; ++i) {
    fake_store_raw(out[0], i, in[1], 0);
  }
  for (int64_t i = 0; i < in[0]->count; ++i) {
    int64_t to = 0;
    bool inside = true;
    for (int d = 0; d < type->rank; ++d) {
      int64_t at = low[d] + position[d] * (interior[d] + 1);
      inside = inside && at >= 0 && at < out[0]->type.dims[d];
      to += at * step[d];
    }
    if (inside) {
      fake_store_raw(out[0], to, in[0], i);
    }
    (void)fake_next(type->rank, type->dims, position);
  }
}

static void eval_concatenate(fake_run* run, const fake_op* op, fake_array* const* in, fake_array** out) {
  (void)run;
  int64_t dim = fake_attr_int(op, "dimension", 0);
  int64_t step[TT_MAX_RANK];
  fake_strides(out[0]->type.rank, out[0]->type.dims, step);
  int64_t base = 0;
  for (int k = 0; k < op->num_operands; ++k) {
    const tt_type* type = &in[k]->type;
    int64_t position[TT_MAX_RANK] = {0};
    for (int64_t i = 0; i < in[k]->count; ++i) {
      int64_t to = base * step[dim];
      for (int d = 0; d < type->rank; ++d) {
        to += position[d] * step[d];
      }
      fake_store_raw(out[0], to, in[k], i);
      (void)fake_next(type->rank, type->dims, position);
    }
    base += type->dims[dim];
  }
}

static void eval_reverse(fake_run* run, const fake_op* op, fake_array* const* in, fake_array** out) {
  (void)run;
  int64_t dims[TT_MAX_RANK];
  int64_t step[TT_MAX_RANK];
  int n = fake_attr_ints(op, "dimensions", dims, TT_MAX_RANK);
  fake_strides(in[0]->type.rank, in[0]->type.dims, step);
  int64_t first = 0;
  for (int k = 0; k < n; ++k) {
    first += (in[0]->type.dims[dims[k]] - 1) * step[dims[k]];
    step[dims[k]] = -step[dims[k]];
  }
  copy_affine(out[0], in[0], first, step);
}

// Equal elements, but for i1, lie in memory as the operand's do.
const fake_rule fake_shape_rules[] = {
    {"stablehlo.constant",             eval_constant            },
    {"stablehlo.iota",                 eval_iota                },
    {"stablehlo.rng_bit_generator",    eval_random              },
    {"stablehlo.reshape",              eval_reshape             },
    {"stablehlo.bitcast_convert",      eval_reshape             },
    {"stablehlo.transpose",            eval_transpose           },
    {"stablehlo.broadcast_in_dim",     eval_broadcast           },
    {"stablehlo.slice",                eval_slice               },
    {"stablehlo.dynamic_slice",        eval_dynamic_slice       },
    {"stablehlo.dynamic_update_slice", eval_dynamic_update_slice},
    {"stablehlo.pad",                  eval_pad                 },
    {"stablehlo.concatenate",          eval_concatenate         },
    {"stablehlo.reverse",              eval_reverse             },
    {NULL,                             NULL                     },
};
