// SPDX-License-Identifier: Apache-2.0
//
// Access to a call's arguments and outputs.
#include <stdio.h>

#include "ops/lower.h"

int tt_call_number_slots(const tt_call* call, int first_slot[TT_MAX_ARGS]) {
  int slots = 0;
  for (int i = 0; i < call->num_args; ++i) {
    first_slot[i] = slots;
    if (call->args[i].kind == TT_ARG_TENSOR) {
      slots += 1;
    } else if (call->args[i].kind == TT_ARG_TENSORS) {
      slots += call->args[i].count;
    }
  }
  return slots;
}

tt_builder* tt_lower_builder(tt_lower* L) {
  return L->b;
}

static const tt_argument* argument(const tt_lower* L, int i) {
  static const tt_argument absent = {.kind = TT_ARG_NONE};
  return i >= 0 && i < L->call->num_args ? &L->call->args[i] : &absent;
}

static tt_val wrong_kind(tt_lower* L, int i, const char* wanted) {
  return tt_builder_fail(L->b, TT_INTERNAL, "argument %d of %s: expected %s, got kind %d", i, L->name, wanted,
                         (int)argument(L, i)->kind);
}

// ---- tensors ----------------------------------------------------------------------------------------------------------

const tt_tensor* tt_arg_info_at(const tt_lower* L, int i, int j) {
  const tt_argument* arg = argument(L, i);
  bool list = arg->kind == TT_ARG_TENSORS;
  if ((!list && arg->kind != TT_ARG_TENSOR) || j < 0 || j >= (list ? arg->count : 1)) {
    return NULL;
  }
  const tt_tensor* t = &arg->tensors[j];
  return t->dtype == TT_DTYPE_INVALID ? NULL : t;
}
const tt_tensor* tt_arg_info(const tt_lower* L, int i) {
  return tt_arg_info_at(L, i, 0);
}

static tt_val read_tensor(tt_lower* L, int i, int j, tt_dtype dtype) {
  const tt_tensor* t = tt_arg_info_at(L, i, j);
  if (t == NULL) {
    return wrong_kind(L, i, "a tensor");
  }
  return L->hooks->read(L, L->first_slot[i] + j, t, dtype);
}
tt_val tt_arg(tt_lower* L, int i) {
  return read_tensor(L, i, 0, TT_DTYPE_INVALID);
}
tt_val tt_arg_as(tt_lower* L, int i, tt_dtype dtype) {
  return read_tensor(L, i, 0, dtype);
}
tt_val tt_arg_at(tt_lower* L, int i, int j) {
  return read_tensor(L, i, j, TT_DTYPE_INVALID);
}
bool tt_arg_has_at(const tt_lower* L, int i, int j) {
  return tt_arg_info_at(L, i, j) != NULL;
}

bool tt_arg_has(const tt_lower* L, int i) {
  const tt_argument* arg = argument(L, i);
  if (arg->kind == TT_ARG_TENSOR) {
    return arg->tensors[0].dtype != TT_DTYPE_INVALID;
  }
  return arg->kind != TT_ARG_NONE;
}

int tt_arg_count(const tt_lower* L, int i) {
  const tt_argument* arg = argument(L, i);
  switch ((tt_arg_kind)arg->kind) {
    case TT_ARG_TENSORS:
    case TT_ARG_INTS:
    case TT_ARG_FLOATS:
    case TT_ARG_BOOLS:
    case TT_ARG_NUMBERS:
      return arg->count;
    case TT_ARG_NONE:
      return 0;
    default:
      return 1;
  }
}

// ---- numbers ----------------------------------------------------------------------------------------------------------

tt_val tt_const_scalar(tt_builder* b, const tt_scalar* value, tt_dtype dtype) {
  tt_type type = tt_type_scalar(dtype);
  if (value->kind == 'i') {
    return tt_splat_i(b, &type, value->i);
  }
  return tt_splat_f(b, &type, value->re, value->kind == 'c' ? value->im : 0);
}

static bool number_at(const tt_lower* L, int i, int j, tt_scalar* out) {
  const tt_argument* arg = argument(L, i);
  switch ((tt_arg_kind)arg->kind) {
    case TT_ARG_INT:
    case TT_ARG_BOOL:
      *out = (tt_scalar){.kind = 'i', .i = arg->number.i, .re = (double)arg->number.i};
      return j == 0;
    case TT_ARG_FLOAT:
      *out = (tt_scalar){.kind = 'f', .re = arg->number.re};
      return j == 0;
    case TT_ARG_COMPLEX:
      *out = (tt_scalar){.kind = 'c', .re = arg->number.re, .im = arg->number.im};
      return j == 0;
    case TT_ARG_NUMBERS:
      if (j >= arg->count) {
        return false;
      }
      *out = arg->numbers[j];
      return true;
    case TT_ARG_FLOATS:
      *out = (tt_scalar){.kind = 'f'};
      if (j >= arg->count) {
        return false;
      }
      out->re = arg->floats[j];
      return true;
    default:
      return false;
  }
}

tt_val tt_arg_scalar_at(tt_lower* L, int i, int j, tt_dtype dtype) {
  tt_scalar value;
  if (!number_at(L, i, j, &value)) {
    return wrong_kind(L, i, "a number");
  }
  if (value.kind == 'c' && value.im != 0 && !tt_dtype_is_complex(dtype) && dtype != TT_BOOL) {
    const char* name = dtype == TT_F64            ? "double"
                       : dtype == TT_I64          ? "int64_t"
                       : tt_dtype_is_float(dtype) ? "float"
                                                  : "int";
    return tt_builder_fail(L->b, TT_INVALID_ARGUMENT, "value cannot be converted to type %s without overflow", name);
  }
  return argument(L, i)->runtime ? L->hooks->number(L, i, j, &value, dtype) : tt_const_scalar(L->b, &value, dtype);
}
tt_val tt_arg_scalar(tt_lower* L, int i, tt_dtype dtype) {
  return tt_arg_scalar_at(L, i, 0, dtype);
}

// A number that becomes part of the program: its value must be in the key.
static bool baked(tt_lower* L, int i, tt_scalar* out) {
  if (argument(L, i)->runtime) {
    L->hooks->bake(L, i);
  }
  return number_at(L, i, 0, out);
}

int64_t tt_arg_int(tt_lower* L, int i) {
  tt_scalar value;
  if (!baked(L, i, &value)) {
    wrong_kind(L, i, "an integer");
    return 0;
  }
  return value.kind == 'i' ? value.i : (int64_t)value.re;
}
int64_t tt_arg_int_or(tt_lower* L, int i, int64_t value) {
  return tt_arg_has(L, i) ? tt_arg_int(L, i) : value;
}

double tt_arg_float(tt_lower* L, int i) {
  tt_scalar value;
  if (!baked(L, i, &value)) {
    wrong_kind(L, i, "a number");
    return 0;
  }
  return value.kind == 'i' ? (double)value.i : value.re;
}
double tt_arg_float_or(tt_lower* L, int i, double value) {
  return tt_arg_has(L, i) ? tt_arg_float(L, i) : value;
}
bool tt_arg_bool(tt_lower* L, int i) {
  return tt_arg_int_or(L, i, 0) != 0;
}

const int64_t* tt_arg_ints(tt_lower* L, int i, int* out_count) {
  const tt_argument* arg = argument(L, i);
  *out_count = 0;
  switch ((tt_arg_kind)arg->kind) {
    case TT_ARG_INTS:
    case TT_ARG_BOOLS:
      *out_count = arg->count;
      return arg->ints;
    case TT_ARG_INT:
      *out_count = 1;
      return &arg->number.i;
    case TT_ARG_NONE:
      return NULL;
    default:
      wrong_kind(L, i, "a list of integers");
      return NULL;
  }
}

const double* tt_arg_floats(tt_lower* L, int i, int* out_count) {
  const tt_argument* arg = argument(L, i);
  *out_count = 0;
  if (arg->kind == TT_ARG_NONE) {
    return NULL;
  }
  if (arg->kind != TT_ARG_FLOATS) {
    wrong_kind(L, i, "a list of numbers");
    return NULL;
  }
  if (arg->runtime) {
    L->hooks->bake(L, i);
  }
  *out_count = arg->count;
  return arg->floats;
}

const char* tt_arg_string(tt_lower* L, int i) {
  const tt_argument* arg = argument(L, i);
  return arg->kind == TT_ARG_STRING ? arg->text : "";
}

tt_dtype tt_arg_dtype_or(tt_lower* L, int i, tt_dtype value) {
  const tt_argument* arg = argument(L, i);
  return arg->kind == TT_ARG_DTYPE ? (tt_dtype)arg->number.i : value;
}

char tt_arg_number_class(const tt_lower* L, int i) {
  switch ((tt_arg_kind)argument(L, i)->kind) {
    case TT_ARG_BOOL:
      return 'b';
    case TT_ARG_INT:
      return 'i';
    case TT_ARG_COMPLEX:
      return 'c';
    default:
      return 'f';
  }
}

char tt_arg_number_class_at(const tt_lower* L, int i, int j) {
  tt_scalar value = {.kind = 'f'};
  return argument(L, i)->kind == TT_ARG_NUMBERS && number_at(L, i, j, &value) ? value.kind : tt_arg_number_class(L, i);
}

// ---- outputs ----------------------------------------------------------------------------------------------------------

int tt_out_count(const tt_lower* L) {
  return L->num_outs;
}

const tt_type* tt_out_type(const tt_lower* L, int k) {
  static const tt_type absent = {.dtype = TT_DTYPE_INVALID};
  return k >= 0 && k < L->num_outs ? &L->out_types[k] : &absent;
}
bool tt_out_wanted(const tt_lower* L, int k) {
  return tt_out_type(L, k)->dtype != TT_DTYPE_INVALID;
}

void tt_out(tt_lower* L, int k, tt_val value) {
  if (k < 0 || k >= L->num_outs) {
    tt_builder_fail(L->b, TT_INTERNAL, "%s: expected at most %d outputs, got output %d", L->name, L->num_outs, k);
    return;
  }
  if (!tt_out_wanted(L, k) || tt_builder_failed(L->b)) {
    return;
  }
  const tt_type* want = &L->out_types[k];
  value = tt_expand(L->b, tt_convert(L->b, value, want->dtype), want->rank, want->dims);
  const tt_type* have = tt_type_of(L->b, value);
  if (!tt_builder_failed(L->b) && !tt_type_same_dims(have, want)) {
    char a[256];
    char c[256];
    tt_builder_fail(L->b, TT_INTERNAL, "%s: the lowering of output %d gives %s, PyTorch says %s", L->name, k,
                    tt_type_describe(have, a, sizeof a), tt_type_describe(want, c, sizeof c));
    return;
  }
  L->outs[k] = value;
}

void tt_write_at(tt_lower* L, int i, int j, tt_val value) {
  const tt_tensor* t = tt_arg_info_at(L, i, j);
  if (t == NULL) {
    wrong_kind(L, i, "a tensor to write to");
    return;
  }
  value = tt_expand(L->b, tt_convert(L->b, value, t->dtype), t->rank, t->sizes);
  L->hooks->write(L, L->first_slot[i] + j, t, value);
}
void tt_write(tt_lower* L, int i, tt_val value) {
  tt_write_at(L, i, 0, value);
}

void tt_unsupported(tt_lower* L, const char* fmt, ...) {
  char text[512];
  va_list args;
  va_start(args, fmt);
  vsnprintf(text, sizeof text, fmt, args);
  va_end(args);
  tt_builder_fail(L->b, TT_UNIMPLEMENTED, "%s: %s", L->name, text);
}

// ---- dimensions, random numbers, index checks -------------------------------------------------------------------------

int tt_wrap_dim(int64_t dim, int rank) {
  int64_t n = rank > 0 ? rank : 1;
  return (int)(dim < 0 ? dim + n : dim);
}

int tt_arg_dims(tt_lower* L, int i, int rank, int64_t out_dims[TT_MAX_RANK]) {
  int n;
  const int64_t* dims = tt_arg_ints(L, i, &n);
  if (n == 0) {
    for (int d = 0; d < rank; ++d) {
      out_dims[d] = d;
    }
    return rank;
  }
  if (rank == 0) {
    return 0;
  }
  for (int d = 0; d < n && d < TT_MAX_RANK; ++d) {
    out_dims[d] = tt_wrap_dim(dims[d], rank);
  }
  return n;
}

tt_val tt_random_bits(tt_lower* L, const tt_type* type) {
  return L->hooks->random_bits(L, type);
}

tt_val tt_random_uniform(tt_lower* L, tt_dtype dtype, int rank, const int64_t* dims) {
  // The top mantissa bits of a random word, as an integer times 2^-bits: uniform on [0, 1), 1 never.
  bool wide = dtype == TT_F64;
  tt_type type = tt_type_make(wide ? TT_U64 : TT_U32, rank, dims);
  tt_val bits = tt_random_bits(L, &type);
  tt_val word = tt_bin(L->b, TT_SHR_LOGICAL, bits, tt_const_i(L->b, type.dtype, wide ? 11 : 8));
  return tt_mul_f(L->b, tt_convert(L->b, word, wide ? TT_F64 : TT_F32), wide ? 0x1p-53 : 0x1p-24);
}

tt_val tt_random_normal(tt_lower* L, tt_dtype dtype, int rank, const int64_t* dims) {
  // Inverse of the normal distribution: sqrt(2) * erf_inv(u), u uniform on (-1, 1).
  tt_dtype compute = dtype == TT_F64 ? TT_F64 : TT_F32;
  tt_val u = tt_random_uniform(L, compute, rank, dims);
  tt_val half_step = tt_like_f(L->b, u, compute == TT_F64 ? 0x1p-54 : 0x1p-25);
  tt_val centred = tt_add_f(L->b, tt_mul_f(L->b, tt_add(L->b, u, half_step), 2), -1);
  return tt_mul_f(L->b, tt_unary(L->b, TT_CHLO_ERF_INV, centred), 1.4142135623730951);
}

// The index as i64, wrapped; *out_bad: which elements are out of range, reported.
static tt_val checked(tt_lower* L, tt_val index, int64_t size, bool wrap, tt_val* out_bad) {
  tt_builder* b = L->b;
  tt_val at = tt_convert(b, index, TT_I64);
  tt_val low = tt_test_f(b, TT_LT, at, wrap ? -(double)size : 0);
  tt_val high = tt_test(b, TT_GE, at, tt_const_i(b, TT_I64, size));
  tt_val bad = tt_or(b, low, high);
  int rank = tt_rank_of(b, at);
  int64_t dims[TT_MAX_RANK];
  for (int d = 0; d < rank; ++d) {
    dims[d] = d;
  }
  if (tt_type_elements(tt_type_of(b, at)) > 0) {
    // One offending index: the largest of those too high or, shown negative, too low.
    tt_val offender = tt_where(b, bad, at, tt_const_i(b, TT_I64, 0));
    tt_val highest = tt_reduce(b, TT_REDUCE_MAX, offender, rank, dims);
    tt_val lowest = tt_reduce(b, TT_REDUCE_MIN, offender, rank, dims);
    tt_val shown = tt_where(b, tt_test_f(b, TT_NE, highest, 0), highest, lowest);
    L->hooks->report_index(L, tt_reduce(b, TT_REDUCE_OR, bad, rank, dims), shown, size);
  }
  if (wrap) {
    tt_val wrapped = tt_add(b, at, tt_const_i(b, TT_I64, size));
    at = tt_where(b, tt_test_f(b, TT_LT, at, 0), wrapped, at);
  }
  *out_bad = bad;
  return at;
}

tt_val tt_check_index(tt_lower* L, tt_val index, int64_t size, bool wrap) {
  tt_val bad;
  tt_val at = tt_max(L->b, checked(L, index, size, wrap, &bad), tt_const_i(L->b, TT_I64, 0));
  return tt_min(L->b, at, tt_const_i(L->b, TT_I64, size > 0 ? size - 1 : 0));
}

tt_val tt_check_place(tt_lower* L, tt_val index, int64_t size, bool wrap) {
  tt_val bad;
  tt_val at = checked(L, index, size, wrap, &bad);
  return tt_where(L->b, bad, tt_const_i(L->b, TT_I64, -1), at);
}
