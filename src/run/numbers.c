// SPDX-License-Identifier: Apache-2.0
#include "run/numbers.h"

#include <math.h>
#include <string.h>

tt_dtype tt_number_carrier(tt_dtype dtype) {
  return tt_dtype_is_float(dtype) && dtype != TT_F64 ? TT_F32 : dtype;
}

static int64_t as_integer(const tt_scalar* value) {
  if (value->kind == 'i') {
    return value->i;
  }
  // As a C cast, but defined everywhere.
  if (isnan(value->re)) {
    return 0;
  }
  if (value->re >= 0x1p63) {
    return value->re >= 0x1p64 ? INT64_MAX : (int64_t)(uint64_t)value->re;
  }
  return value->re < -0x1p63 ? INT64_MIN : (int64_t)value->re;
}

void tt_number_store(const tt_scalar* value, tt_dtype dtype, uint64_t out[2]) {
  double re = value->kind == 'i' ? (double)value->i : value->re;
  double im = value->kind == 'c' ? value->im : 0;
  float single[2] = {value->kind == 'i' ? (float)value->i : (float)re, (float)im};
  double pair[2] = {re, im};
  int64_t integer = as_integer(value);
  out[0] = out[1] = 0;
  switch (tt_dtype_class(dtype)) {
    case 'b': {
      unsigned char truth = value->kind == 'i' ? value->i != 0 : re != 0 || im != 0;
      memcpy(out, &truth, 1);
      break;
    }
    case 'f':
      memcpy(out, dtype == TT_F64 ? (const void*)pair : (const void*)single, tt_dtype_size(dtype));
      break;
    case 'c':
      memcpy(out, dtype == TT_C128 ? (const void*)pair : (const void*)single, tt_dtype_size(dtype));
      break;
    default:
      memcpy(out, &integer, tt_dtype_size(dtype));  // little-endian: the low bytes
      break;
  }
}
