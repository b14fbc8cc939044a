// SPDX-License-Identifier: Apache-2.0
//
// Arrays of numbers: formats, conversion, positions.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "program.h"

void* fake_alloc(size_t count, size_t size) {
  void* p = calloc(count > 0 ? count : 1, size > 0 ? size : 1);
  if (p == NULL) {
    abort();
  }
  return p;
}

// ---- dtypes ---------------------------------------------------------------------------------------------------------------

typedef struct dtype_row {
  unsigned char size;
  char cls;
  unsigned char exponent, mantissa;  // of small floats
} dtype_row;

static dtype_row row_of(tt_dtype dtype) {
#define ROW(id, text, bytes, letter) [id] = {bytes, letter, 0, 0},
  static const dtype_row rows[TT_DTYPE_COUNT] = {TT_DTYPES(ROW)};
#undef ROW
  dtype_row row = rows[dtype];
  if (dtype == TT_F16 || dtype == TT_BF16 || dtype == TT_F8E5M2) {
    row.exponent = dtype == TT_BF16 ? 8 : 5;
    row.mantissa = dtype == TT_F16 ? 10 : dtype == TT_BF16 ? 7 : 2;
  }
  return row;
}

size_t fake_dtype_size(tt_dtype dtype) {
  return row_of(dtype).size;
}
char fake_dtype_class(tt_dtype dtype) {
  return row_of(dtype).cls;
}

bool fake_dtype_known(tt_dtype dtype) {
  return row_of(dtype).cls != 'f' || dtype == TT_F32 || dtype == TT_F64 || row_of(dtype).exponent != 0;
}

tt_dtype fake_dtype_parse(const char** at) {
#define ROW(id, text, bytes, cls) [id] = text,
  static const char* const texts[TT_DTYPE_COUNT] = {TT_DTYPES(ROW)};
#undef ROW
  for (int i = TT_DTYPE_INVALID + 1; i < TT_DTYPE_COUNT; ++i) {
    size_t n = strlen(texts[i]);
    if (strncmp(*at, texts[i], n) == 0 && (*at)[n] == '>' && fake_dtype_known((tt_dtype)i)) {
      *at += n;
      return (tt_dtype)i;
    }
  }
  return TT_DTYPE_INVALID;
}

// ---- arrays ---------------------------------------------------------------------------------------------------------------

size_t fake_array_bytes(const tt_type* type) {
  size_t bytes = fake_dtype_size(type->dtype);
  for (int d = 0; d < type->rank; ++d) {
    bytes *= (size_t)type->dims[d];
  }
  return bytes;
}

fake_array* fake_array_new(const tt_type* type) {
  fake_array* array = fake_alloc(1, sizeof *array);
  array->refs = 1;
  array->type = *type;
  array->count = (int64_t)(fake_array_bytes(type) / fake_dtype_size(type->dtype));
  array->bytes = fake_alloc(fake_array_bytes(type), 1);
  return array;
}

fake_array* fake_array_share(fake_array* array) {
  atomic_fetch_add(&array->refs, 1);
  return array;
}

void fake_array_release(fake_array* array) {
  if (array != NULL && atomic_fetch_sub(&array->refs, 1) == 1) {
    free(array->bytes);
    free(array);
  }
}

// ---- numbers --------------------------------------------------------------------------------------------------------------

static double small_decode(uint32_t bits, int exponent, int mantissa) {
  int bias = (1 << (exponent - 1)) - 1;
  uint32_t fraction = bits & ((1U << mantissa) - 1);
  int power = (int)(bits >> mantissa & ((1U << exponent) - 1));
  double sign = (bits >> (exponent + mantissa) & 1) != 0 ? -1 : 1;
  if (power == (1 << exponent) - 1) {
    return fraction != 0 ? (double)NAN : sign * (double)INFINITY;
  }
  if (power == 0) {
    return sign * ldexp((double)fraction, 1 - bias - mantissa);
  }
  return sign * ldexp((double)(fraction | 1U << mantissa), power - bias - mantissa);
}

static uint32_t small_encode(double value, int exponent, int mantissa) {
  int bias = (1 << (exponent - 1)) - 1;
  uint32_t top = ((1U << exponent) - 1) << mantissa;
  uint32_t sign = signbit(value) ? 1U << (exponent + mantissa) : 0;
  double size = fabs(value);
  if (isnan(value)) {
    return sign | top | 1U << (mantissa - 1);
  }
  int power = 0;
  (void)frexp(size, &power);
  int step = (power - 1 < 1 - bias ? 1 - bias : power - 1) - mantissa;
  if (!isinf(size)) {
    size = ldexp(nearbyint(ldexp(size, -step)), step);  // rounded to the format's grid, ties to even
  }
  if (size >= ldexp(1, bias + 1)) {
    return sign | top;
  }
  if (size < ldexp(1, 1 - bias)) {
    return sign | (uint32_t)ldexp(size, bias - 1 + mantissa);
  }
  double fraction = frexp(size, &power);
  return sign | (uint32_t)(power - 1 + bias) << mantissa | (uint32_t)ldexp(fraction * 2 - 1, mantissa);
}

fake_num fake_load(const fake_array* array, int64_t at) {
  dtype_row row = row_of(array->type.dtype);
  const unsigned char* p = array->bytes + (size_t)at * row.size;
  fake_num n = {0, 0, 0};
  uint64_t bits = 0;
  memcpy(&bits, p, row.size < 8 ? row.size : 8);
  switch (row.cls) {
    case 'b':
    case 'u':
      n.i = (int64_t)bits;
      break;
    case 'i':
      n.i = (int64_t)(bits << (64 - 8 * row.size)) >> (64 - 8 * row.size);
      break;
    case 'c':
      if (row.size == 8) {
        float pair[2];
        memcpy(pair, p, sizeof pair);
        n.re = (double)pair[0];
        n.im = (double)pair[1];
      } else {
        memcpy(&n.re, p, sizeof n.re);
        memcpy(&n.im, p + sizeof n.re, sizeof n.im);
      }
      break;
    default:
      if (row.exponent != 0) {
        n.re = small_decode((uint32_t)bits, row.exponent, row.mantissa);
      } else if (row.size == 8) {
        memcpy(&n.re, p, sizeof n.re);
      } else {
        float single;
        memcpy(&single, p, sizeof single);
        n.re = (double)single;
      }
      break;
  }
  return n;
}

void fake_store(fake_array* array, int64_t at, fake_num value) {
  dtype_row row = row_of(array->type.dtype);
  unsigned char* p = array->bytes + (size_t)at * row.size;
  float single[2] = {(float)value.re, (float)value.im};
  double pair[2] = {value.re, value.im};
  switch (row.cls) {
    case 'b':
      *p = value.i != 0;
      break;
    case 'u':
    case 'i':
      memcpy(p, &value.i, row.size);
      break;
    case 'c':
      memcpy(p, row.size == 8 ? (const void*)single : (const void*)pair, row.size);
      break;
    default:
      if (row.exponent != 0) {
        uint32_t bits = small_encode(value.re, row.exponent, row.mantissa);
        memcpy(p, &bits, row.size);
      } else {
        memcpy(p, row.size == 4 ? (const void*)single : (const void*)pair, row.size);
      }
      break;
  }
}

void fake_store_raw(fake_array* to, int64_t at, const fake_array* from, int64_t from_at) {
  size_t size = row_of(to->type.dtype).size;
  memcpy(to->bytes + (size_t)at * size, from->bytes + (size_t)from_at * size, size);
}

static int64_t to_integer(double value, bool is_signed) {
  if (isnan(value)) {
    return 0;
  }
  if (is_signed) {
    return value >= 0x1p63 ? INT64_MAX : value <= -0x1p63 ? INT64_MIN : (int64_t)value;
  }
  return value >= 0x1p64 ? -1 : value <= 0 ? 0 : (int64_t)(uint64_t)value;
}

fake_num fake_convert(fake_num value, tt_dtype from, tt_dtype to) {
  char source = fake_dtype_class(from);
  char target = fake_dtype_class(to);
  bool integral = source == 'b' || source == 'u' || source == 'i';
  fake_num n = {0, 0, 0};
  if (target == 'b') {
    n.i = integral ? value.i != 0 : value.re != 0 || value.im != 0;
  } else if (target == 'u' || target == 'i') {
    n.i = integral ? value.i : to_integer(value.re, target == 'i');
  } else {
    n.re = !integral ? value.re : source == 'i' ? (double)value.i : (double)(uint64_t)value.i;
    n.im = value.im;
  }
  return n;
}

// ---- positions ------------------------------------------------------------------------------------------------------------

void fake_strides(int rank, const int64_t* dims, int64_t* strides) {
  int64_t run = 1;
  for (int d = rank - 1; d >= 0; --d) {
    strides[d] = run;
    run *= dims[d];
  }
}

bool fake_next(int rank, const int64_t* dims, int64_t* position) {
  for (int d = rank - 1; d >= 0; --d) {
    if (++position[d] < dims[d]) {
      return true;
    }
    position[d] = 0;
  }
  return false;
}
