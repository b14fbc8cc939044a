// SPDX-License-Identifier: Apache-2.0
//
// Element types and tensor types: lookups in the one table of tt/type.h and arithmetic on sizes.
#include "tt/type.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"

typedef struct dtype_row {
  const char* text;
  uint8_t size;
  char cls;
} dtype_row;

static const dtype_row rows[TT_DTYPE_COUNT] = {
    [TT_DTYPE_INVALID] = {"invalid", 0, '?'},
#define TT_DTYPE_ROW(id, text, bytes, cls) [id] = {text, bytes, cls},
    TT_DTYPES(TT_DTYPE_ROW)
#undef TT_DTYPE_ROW
};

static const dtype_row* row_of(tt_dtype dtype) {
  size_t index = (size_t)dtype;
  return &rows[index < TT_DTYPE_COUNT ? index : TT_DTYPE_INVALID];
}

size_t tt_dtype_size(tt_dtype dtype) {
  return row_of(dtype)->size;
}

const char* tt_dtype_text(tt_dtype dtype) {
  return row_of(dtype)->text;
}

char tt_dtype_class(tt_dtype dtype) {
  return row_of(dtype)->cls;
}

bool tt_dtype_is_float(tt_dtype dtype) {
  return row_of(dtype)->cls == 'f';
}

bool tt_dtype_is_complex(tt_dtype dtype) {
  return row_of(dtype)->cls == 'c';
}

bool tt_dtype_is_integral(tt_dtype dtype) {
  char cls = row_of(dtype)->cls;
  return cls == 'i' || cls == 'u';
}

bool tt_dtype_is_signed(tt_dtype dtype) {
  char cls = row_of(dtype)->cls;
  return cls == 'i' || cls == 'f' || cls == 'c';
}

tt_dtype tt_dtype_real(tt_dtype dtype) {
  if (dtype == TT_C64) {
    return TT_F32;
  }
  return dtype == TT_C128 ? TT_F64 : dtype;
}

tt_dtype tt_dtype_complex(tt_dtype dtype) {
  if (tt_dtype_is_complex(dtype)) {
    return dtype;
  }
  return dtype == TT_F64 ? TT_C128 : TT_C64;
}

tt_dtype tt_dtype_compute(tt_dtype dtype) {
  return tt_dtype_is_float(dtype) && tt_dtype_size(dtype) < 4 ? TT_F32 : dtype;
}

tt_type tt_type_make(tt_dtype dtype, int rank, const int64_t* dims) {
  TT_CHECK(rank >= 0 && rank <= TT_MAX_RANK);
  tt_type type = {.dtype = dtype, .rank = rank};
  for (int d = 0; d < rank; ++d) {
    type.dims[d] = dims[d];
  }
  return type;
}

tt_type tt_type_scalar(tt_dtype dtype) {
  return tt_type_make(dtype, 0, NULL);
}

// Saturates at INT64_MAX, so that a size check against memory refuses what cannot be counted. A zero anywhere wins.
int64_t tt_type_elements(const tt_type* type) {
  int64_t product = 1;
  bool overflow = false;
  for (int d = 0; d < type->rank; ++d) {
    if (type->dims[d] == 0) {
      return 0;
    }
    overflow = __builtin_mul_overflow(product, type->dims[d], &product) || overflow;
  }
  return overflow ? INT64_MAX : product;
}

int64_t tt_type_bytes(const tt_type* type) {
  int64_t bytes = 0;
  return __builtin_mul_overflow(tt_type_elements(type), (int64_t)tt_dtype_size(type->dtype), &bytes) ? INT64_MAX
                                                                                                     : bytes;
}

bool tt_type_same_dims(const tt_type* a, const tt_type* b) {
  if (a->rank != b->rank || a->bounded != b->bounded) {
    return false;
  }
  for (int d = 0; d < a->rank; ++d) {
    if (a->dims[d] != b->dims[d]) {
      return false;
    }
  }
  return true;
}

bool tt_type_equal(const tt_type* a, const tt_type* b) {
  return a->dtype == b->dtype && tt_type_same_dims(a, b);
}

const char* tt_type_describe(const tt_type* type, char* buffer, size_t size) {
  tt_strbuf text = {0};
  tt_strbuf_addf(&text, "%s[", tt_dtype_text(type->dtype));
  for (int d = 0; d < type->rank; ++d) {
    bool bounded = (type->bounded >> d & 1) != 0;
    tt_strbuf_addf(&text, "%s%s%" PRId64, d ? "," : "", bounded ? "<=" : "", type->dims[d]);
  }
  tt_strbuf_add(&text, "]");
  (void)snprintf(buffer, size, "%s", text.text);
  tt_strbuf_free(&text);
  return buffer;
}
