// SPDX-License-Identifier: Apache-2.0
//
// Element types and tensor types: what a StableHLO value or a device buffer holds.
//
// Thread rule: plain values, no state.
#ifndef TT_TYPE_H
#define TT_TYPE_H

#include <stdbool.h>
#include <stdint.h>

#include "tt/status.h"

#ifdef __cplusplus
extern "C" {
#endif

// One row an element type: enumerator, StableHLO spelling, bytes an element, class letter
// (b bool, u unsigned, i signed, f float, c complex).
#define TT_DTYPES(X)                     \
  X(TT_BOOL, "i1", 1, 'b')               \
  X(TT_U8, "ui8", 1, 'u')                \
  X(TT_I8, "i8", 1, 'i')                 \
  X(TT_U16, "ui16", 2, 'u')              \
  X(TT_I16, "i16", 2, 'i')               \
  X(TT_U32, "ui32", 4, 'u')              \
  X(TT_I32, "i32", 4, 'i')               \
  X(TT_U64, "ui64", 8, 'u')              \
  X(TT_I64, "i64", 8, 'i')               \
  X(TT_F16, "f16", 2, 'f')               \
  X(TT_BF16, "bf16", 2, 'f')             \
  X(TT_F32, "f32", 4, 'f')               \
  X(TT_F64, "f64", 8, 'f')               \
  X(TT_C64, "complex<f32>", 8, 'c')      \
  X(TT_C128, "complex<f64>", 16, 'c')    \
  X(TT_F8E4M3FN, "f8E4M3FN", 1, 'f')     \
  X(TT_F8E4M3FNUZ, "f8E4M3FNUZ", 1, 'f') \
  X(TT_F8E5M2, "f8E5M2", 1, 'f')         \
  X(TT_F8E5M2FNUZ, "f8E5M2FNUZ", 1, 'f') \
  X(TT_F8E8M0FNU, "f8E8M0FNU", 1, 'f')

typedef enum tt_dtype {
  TT_DTYPE_INVALID = 0,
#define TT_DTYPE_ENUM(id, text, bytes, cls) id,
  TT_DTYPES(TT_DTYPE_ENUM)
#undef TT_DTYPE_ENUM
      TT_DTYPE_COUNT
} tt_dtype;

// Dimensions a tensor may have. PyTorch allows 64; more than 32 raises INVALID_ARGUMENT.
#define TT_MAX_RANK 32

// A tensor type: element type and sizes, row-major. Bit d of `bounded` set: dims[d] is an upper bound and the size is
// known at run time only (`tensor<?xf32, #stablehlo.bounds<128>>`).
typedef struct tt_type {
  tt_dtype dtype;
  int32_t rank;
  uint32_t bounded;
  int64_t dims[TT_MAX_RANK];
} tt_type;

TT_EXPORT size_t tt_dtype_size(tt_dtype dtype);       // bytes an element; 0 for invalid
TT_EXPORT const char* tt_dtype_text(tt_dtype dtype);  // StableHLO spelling
TT_EXPORT char tt_dtype_class(tt_dtype dtype);        // 'b', 'u', 'i', 'f', 'c'
TT_EXPORT bool tt_dtype_is_float(tt_dtype dtype);     // real floating point
TT_EXPORT bool tt_dtype_is_complex(tt_dtype dtype);
TT_EXPORT bool tt_dtype_is_integral(tt_dtype dtype);  // signed or unsigned, not bool
TT_EXPORT bool tt_dtype_is_signed(tt_dtype dtype);    // signed integer, float or complex
TT_EXPORT tt_dtype tt_dtype_real(tt_dtype dtype);     // C64 -> F32, C128 -> F64, others themselves
TT_EXPORT tt_dtype tt_dtype_complex(tt_dtype dtype);  // F64 -> C128, complex themselves, others -> C64
// The type PyTorch computes in ("opmath"): F32 for 8- and 16-bit floats, others themselves.
TT_EXPORT tt_dtype tt_dtype_compute(tt_dtype dtype);

TT_EXPORT tt_type tt_type_make(tt_dtype dtype, int rank, const int64_t* dims);
TT_EXPORT tt_type tt_type_scalar(tt_dtype dtype);
// *out = *type without the unused dims: cheaper than an assignment, but leaves them as they were.
static inline void tt_type_copy(tt_type* out, const tt_type* type) {
  out->dtype = type->dtype;
  out->rank = type->rank;
  out->bounded = type->bounded;
  for (int32_t d = 0; d < type->rank; ++d) {
    out->dims[d] = type->dims[d];
  }
}
TT_EXPORT int64_t tt_type_elements(const tt_type* type);  // product of dims, 1 for rank 0
TT_EXPORT int64_t tt_type_bytes(const tt_type* type);
TT_EXPORT bool tt_type_equal(const tt_type* a, const tt_type* b);
TT_EXPORT bool tt_type_same_dims(const tt_type* a, const tt_type* b);
// "f32[2,3]" into `buffer`, for messages. Returns `buffer`.
TT_EXPORT const char* tt_type_describe(const tt_type* type, char* buffer, size_t size);

#ifdef __cplusplus
}
#endif
#endif  // TT_TYPE_H
