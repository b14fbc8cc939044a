// SPDX-License-Identifier: Apache-2.0
//
// Constants: single elements as bytes and as text, splats, lists and dense data.
#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "hlo/graph.h"

// Up to here a constant's elements are written out; above, as one hexadecimal string.
enum { MAX_LISTED = 16 };

// ---- elements -----------------------------------------------------------------------------------------------------

static uint64_t load_bits(const void* elem, size_t size) {
  uint64_t bits = 0;
  memcpy(&bits, elem, size);
  return bits;
}

static int64_t load_int(tt_dtype dtype, const void* elem) {
  size_t size = tt_dtype_size(dtype);
  uint64_t bits = load_bits(elem, size);
  int unused = (int)(64 - 8 * size);
  return tt_dtype_class(dtype) == 'i' ? (int64_t)(bits << unused) >> unused : (int64_t)bits;
}

void tt_elem_from_int(tt_dtype dtype, int64_t value, void* out) {
  char cls = tt_dtype_class(dtype);
  memset(out, 0, TT_ELEM_MAX);
  if (cls == 'b') {
    *(unsigned char*)out = value != 0;
  } else if (cls == 'u' || cls == 'i') {
    memcpy(out, &value, tt_dtype_size(dtype));
  } else if (dtype == TT_F32) {
    float narrow = (float)value;  // not by way of double, which would round twice
    memcpy(out, &narrow, sizeof narrow);
  } else {
    tt_elem_from_double(dtype, (double)value, 0, out);
  }
}

static int64_t saturate(double value, bool is_signed) {
  double top = is_signed ? 0x1p63 : 0x1p64;
  double bottom = is_signed ? -0x1p63 : 0;
  if (isnan(value)) {
    return 0;
  }
  if (value >= top) {
    return is_signed ? INT64_MAX : -1;
  }
  if (value <= bottom) {
    return is_signed ? INT64_MIN : 0;
  }
  return is_signed ? (int64_t)value : (int64_t)(uint64_t)value;
}

void tt_elem_from_double(tt_dtype dtype, double re, double im, void* out) {
  memset(out, 0, TT_ELEM_MAX);
  switch (tt_dtype_class(dtype)) {
    case 'b':
      *(unsigned char*)out = re != 0;
      break;
    case 'u':
    case 'i': {
      int64_t value = saturate(re, tt_dtype_class(dtype) == 'i');
      memcpy(out, &value, tt_dtype_size(dtype));
      break;
    }
    case 'c': {
      size_t half = tt_dtype_size(dtype) / 2;
      uint64_t re_bits = tt_float_encode(tt_dtype_real(dtype), re);
      uint64_t im_bits = tt_float_encode(tt_dtype_real(dtype), im);
      memcpy(out, &re_bits, half);
      memcpy((char*)out + half, &im_bits, half);
      break;
    }
    default: {
      uint64_t bits = tt_float_encode(dtype, re);
      memcpy(out, &bits, tt_dtype_size(dtype));
      break;
    }
  }
}

double tt_elem_to_double(tt_dtype dtype, const void* elem) {
  switch (tt_dtype_class(dtype)) {
    case 'b':
      return *(const unsigned char*)elem ? 1 : 0;
    case 'u':
      return (double)(uint64_t)load_int(dtype, elem);
    case 'i':
      return (double)load_int(dtype, elem);
    case 'c':
      return tt_float_decode(tt_dtype_real(dtype), load_bits(elem, tt_dtype_size(dtype) / 2));
    default:
      return tt_float_decode(dtype, load_bits(elem, tt_dtype_size(dtype)));
  }
}

// Puts a point where the process's locale has another sign. False if that sign is longer than a byte.
static bool use_point(char* text) {
  char* sign = text + (text[0] == '-' ? 2 : 1);
  *sign = '.';
  return sign[1] >= '0' && sign[1] <= '9';
}

// The shortest decimal that reads back as the same bits; hexadecimal bits where there is none.
static void print_float(tt_strbuf* s, tt_dtype dtype, const void* elem) {
  uint64_t bits = load_bits(elem, tt_dtype_size(dtype));
  double value = tt_float_decode(dtype, bits);
  if (isfinite(value) && dtype != TT_F8E8M0FNU) {
    for (int digits = 1; digits <= 17; digits++) {
      char text[40];
      snprintf(text, sizeof text, "%.*e", digits, value);
      if (tt_float_encode(dtype, strtod(text, NULL)) == bits && use_point(text)) {
        tt_strbuf_add(s, text);
        return;
      }
    }
  }
  tt_strbuf_addf(s, "0x%0*" PRIX64, (int)(2 * tt_dtype_size(dtype)), bits);
}

void tt_elem_print(tt_strbuf* s, tt_dtype dtype, const void* elem) {
  switch (tt_dtype_class(dtype)) {
    case 'b':
      tt_strbuf_add(s, *(const unsigned char*)elem ? "true" : "false");
      break;
    case 'u':
      tt_strbuf_addf(s, "%" PRIu64, (uint64_t)load_int(dtype, elem));
      break;
    case 'i':
      tt_strbuf_addf(s, "%" PRId64, load_int(dtype, elem));
      break;
    case 'c': {
      tt_dtype real = tt_dtype_real(dtype);
      tt_strbuf_add(s, "(");
      print_float(s, real, elem);
      tt_strbuf_add(s, ", ");
      print_float(s, real, (const char*)elem + tt_dtype_size(real));
      tt_strbuf_add(s, ")");
      break;
    }
    default:
      print_float(s, dtype, elem);
      break;
  }
}

// ---- splats -------------------------------------------------------------------------------------------------------

static bool check_type(tt_builder* b, const tt_type* type) {
  if (b->error || !tt_check_dims(b, "constant", type->rank, type->dims)) {
    return false;
  }
  if (type->dtype <= TT_DTYPE_INVALID || type->dtype >= TT_DTYPE_COUNT) {
    tt_builder_fail(b, TT_INVALID_ARGUMENT, "constant: expected a dtype, got %d", (int)type->dtype);
    return false;
  }
  if (type->bounded) {
    tt_builder_fail(b, TT_INVALID_ARGUMENT, "constant: expected a type of static sizes, got %s", tt_show_type(b, type));
    return false;
  }
  return true;
}

tt_val tt_splat_elem(tt_builder* b, const tt_type* type, const void* elem) {
  if (!check_type(b, type)) {
    return TT_POISON;
  }
  TT_SCOPED_TEXT(attrs);
  tt_strbuf_add(&attrs, "value = dense<");
  if (tt_type_elements(type) > 0) {
    tt_elem_print(&attrs, type->dtype, elem);
  }
  tt_strbuf_add(&attrs, "> : ");
  tt_print_type(&attrs, type);
  tt_spec spec = {
      .mnemonic = "stablehlo.constant", .attrs = attrs.text, .num_results = 1, .results = type, .splat = elem};
  return tt_emit(b, &spec);
}

tt_val tt_splat_f(tt_builder* b, const tt_type* type, double re, double im) {
  unsigned char elem[TT_ELEM_MAX];
  if (!check_type(b, type)) {
    return TT_POISON;
  }
  tt_elem_from_double(type->dtype, re, im, elem);
  return tt_splat_elem(b, type, elem);
}

tt_val tt_splat_i(tt_builder* b, const tt_type* type, int64_t value) {
  unsigned char elem[TT_ELEM_MAX];
  if (!check_type(b, type)) {
    return TT_POISON;
  }
  tt_elem_from_int(type->dtype, value, elem);
  return tt_splat_elem(b, type, elem);
}

tt_val tt_const_f(tt_builder* b, tt_dtype dtype, double value) {
  tt_type type = tt_type_scalar(dtype);
  return tt_splat_f(b, &type, value, 0);
}

tt_val tt_const_i(tt_builder* b, tt_dtype dtype, int64_t value) {
  tt_type type = tt_type_scalar(dtype);
  return tt_splat_i(b, &type, value);
}

bool tt_val_is_const(const tt_builder* b, tt_val v, double* out_value) {
  if (v == TT_POISON || v >= b->values.count || !tt_splat_of(b, v) || tt_dtype_is_complex(tt_dtype_of(b, v))) {
    return false;
  }
  *out_value = tt_elem_to_double(tt_dtype_of(b, v), tt_splat_of(b, v));
  return true;
}

// ---- data ---------------------------------------------------------------------------------------------------------

static void print_list(tt_strbuf* s, const tt_type* type, int d, const char** next) {
  if (d == type->rank) {
    tt_elem_print(s, type->dtype, *next);
    *next += tt_dtype_size(type->dtype);
    return;
  }
  tt_strbuf_add(s, "[");
  for (int64_t i = 0; i < type->dims[d]; i++) {
    tt_strbuf_add(s, i ? ", " : "");
    print_list(s, type, d + 1, next);
  }
  tt_strbuf_add(s, "]");
}

static void print_hex(tt_strbuf* s, const unsigned char* bytes, size_t size) {
  static const char digits[] = "0123456789ABCDEF";
  char chunk[1024];
  tt_strbuf_add(s, "\"0x");
  while (size > 0) {
    size_t n = size < sizeof chunk / 2 ? size : sizeof chunk / 2;
    for (size_t i = 0; i < n; i++) {
      chunk[2 * i] = digits[bytes[i] >> 4];
      chunk[2 * i + 1] = digits[bytes[i] & 15];
    }
    tt_strbuf_addn(s, chunk, 2 * n);
    bytes += n;
    size -= n;
  }
  tt_strbuf_add(s, "\"");
}

tt_val tt_const_bytes(tt_builder* b, const tt_type* type, const void* bytes) {
  if (!check_type(b, type)) {
    return TT_POISON;
  }
  size_t size = tt_dtype_size(type->dtype);
  int64_t count = tt_type_elements(type);
  const char* data = bytes;
  // Equal elements: each one equals its successor.
  if (count <= 1 || memcmp(data, data + size, size * (size_t)(count - 1)) == 0) {
    unsigned char elem[TT_ELEM_MAX] = {0};
    memcpy(elem, bytes, count > 0 ? size : 0);
    return tt_splat_elem(b, type, elem);
  }
  TT_SCOPED_TEXT(attrs);
  tt_strbuf_add(&attrs, "value = dense<");
  // The bits of i1 are packed in MLIR's hexadecimal form, so booleans are always listed.
  if (count <= MAX_LISTED || type->dtype == TT_BOOL) {
    print_list(&attrs, type, 0, &data);
  } else {
    print_hex(&attrs, bytes, size * (size_t)count);
  }
  tt_strbuf_add(&attrs, "> : ");
  tt_print_type(&attrs, type);
  return tt_emit1(b, "stablehlo.constant", attrs.text, 0, NULL, type);
}

tt_val tt_const_ints(tt_builder* b, tt_dtype dtype, int64_t n, const int64_t* values) {
  char cls = tt_dtype_class(dtype);
  if (!b->error && cls != 'b' && cls != 'u' && cls != 'i') {
    return tt_builder_fail(b, TT_INVALID_ARGUMENT, "constant: expected an integer dtype or bool, got %s",
                           tt_dtype_text(dtype));
  }
  tt_type type = tt_type_make(dtype, 1, &n);
  if (!check_type(b, &type)) {
    return TT_POISON;
  }
  size_t size = tt_dtype_size(dtype);
  char* bytes = tt_arena_alloc(&b->arena, size * (size_t)n + TT_ELEM_MAX);  // each store writes TT_ELEM_MAX bytes
  for (int64_t i = 0; i < n; i++) {
    tt_elem_from_int(dtype, values[i], bytes + (size_t)i * size);
  }
  return tt_const_bytes(b, &type, bytes);
}

// ---- limits -------------------------------------------------------------------------------------------------------

static tt_val extreme(tt_builder* b, tt_dtype dtype, bool top) {
  int width = (int)(8 * tt_dtype_size(dtype));
  switch (tt_dtype_class(dtype)) {
    case 'b':
      return tt_const_i(b, dtype, top);
    case 'u':
      return tt_const_i(b, dtype, top ? -1 : 0);
    case 'i':
      return tt_const_i(b, dtype, top ? INT64_MAX >> (64 - width) : INT64_MIN >> (64 - width));
    case 'f': {
      double infinity = top ? (double)INFINITY : -(double)INFINITY;
      if (isinf(tt_float_decode(dtype, tt_float_encode(dtype, infinity)))) {
        return tt_const_f(b, dtype, infinity);
      }
      // A format without infinities: its largest finite value.
      double most = dtype == TT_F8E4M3FN     ? 448
                    : dtype == TT_F8E4M3FNUZ ? 240
                    : dtype == TT_F8E5M2FNUZ ? 57344
                                             : 0x1p127;
      return tt_const_f(b, dtype, top ? most : dtype == TT_F8E8M0FNU ? 0x1p-127 : -most);
    }
    default:
      return tt_builder_fail(b, TT_INVALID_ARGUMENT, "limit: expected a real dtype, got %s", tt_dtype_text(dtype));
  }
}

tt_val tt_const_min(tt_builder* b, tt_dtype dtype) {
  return extreme(b, dtype, false);
}

tt_val tt_const_max(tt_builder* b, tt_dtype dtype) {
  return extreme(b, dtype, true);
}
