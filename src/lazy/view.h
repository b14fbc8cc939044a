// SPDX-License-Identifier: Apache-2.0
//
// Views as StableHLO. A view is (sizes, strides, offset) over a base value whose row-major order is the storage order. A plan
// says how the view's elements are reached; the offset itself is not part of it, so one program serves every offset of the same form.
//
//   WHOLE   all of the base, permuted: reshape, transpose
//   BOX     the base reshaped to `factor`; each view dimension walks one factor by a constant step: (dynamic) slice
//   RUN     a contiguous run of the flat base
//   GATHER  anything else: indices are computed
// Dimensions of stride 0 are broadcast. A view of another dtype than the base's reinterprets the bytes first.
#ifndef TT_LAZY_VIEW_H
#define TT_LAZY_VIEW_H

#include "tt/hlo.h"
#include "tt/storage.h"

typedef enum tt_view_kind { TT_VIEW_EMPTY, TT_VIEW_WHOLE, TT_VIEW_BOX, TT_VIEW_RUN, TT_VIEW_GATHER } tt_view_kind;

typedef struct tt_view_plan {
  tt_view_kind kind;
  bool needs_offset;
  bool own_dims;                   // BOX: the factors are the base's dimensions
  int walks;                       // dimensions that move: size > 1 and stride != 0
  int walk_dim[TT_MAX_RANK];       // view dimension, by falling stride
  int walk_factor[TT_MAX_RANK];    // BOX: the factor it walks
  int64_t walk_step[TT_MAX_RANK];  // BOX: its step there
  int factors;                     // BOX
  int64_t factor[TT_MAX_RANK * 2];
  int64_t unit[TT_MAX_RANK * 2];  // elements a step of the factor
  int64_t padded;                 // BOX: elements of the base after padding (>= its own)
} tt_view_plan;

// Elements of `dtype` that the base holds once reinterpreted.
int64_t tt_view_base_elements(const tt_type* base, tt_dtype dtype);
void tt_view_analyse(const tt_type* base, tt_dtype dtype, int rank, const int64_t* sizes, const int64_t* strides,
                     int64_t offset, tt_view_plan* out_plan);
// True if the tensor is the base as it stands: same dtype and dims, row-major, offset 0.
bool tt_view_is_base(const tt_type* base, const tt_tensor* t);

// Applies a tensor's lazy conjugation and negation: from what is stored to what it means, or back.
tt_val tt_view_bits(tt_builder* b, const tt_tensor* t, tt_val value);

// The view's value. `offset` is a 0-d i64 value, used only if the plan needs it.
tt_val tt_view_read(tt_builder* b, tt_val base, const tt_tensor* t, const tt_view_plan* plan, tt_val offset);
// The base after `value` (the view's sizes and dtype) was written. The result has the base's type.
tt_val tt_view_write(tt_builder* b, tt_val base, const tt_tensor* t, const tt_view_plan* plan, tt_val offset,
                     tt_val value);
// The order of dimensions by falling stride (size-1 ones in place); false if the strides leave gaps or overlap.
bool tt_view_dense_order(int rank, const int64_t* sizes, const int64_t* strides, int64_t* out_order);
// The type a fresh dense tensor of these sizes and strides has as a value: sizes in order of falling strides; false if the
// strides leave gaps or overlap.
bool tt_view_dense_type(tt_dtype dtype, int rank, const int64_t* sizes, const int64_t* strides, tt_type* out_type);
// The dense value (of tt_view_dense_type) of a tensor's logical value; empty tensors stay as they are.
tt_val tt_view_to_dense(tt_builder* b, tt_val value, int rank, const int64_t* sizes, const int64_t* strides);

#endif  // TT_LAZY_VIEW_H
