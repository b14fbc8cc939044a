// SPDX-License-Identifier: Apache-2.0
//
// Element types and tensor types.
#include "tt/type.h"

#include "tt_test.h"

TEST(type, table_gives_size_text_and_class) {
  EXPECT_EQ_INT(tt_dtype_size(TT_BF16), 2);
  EXPECT_EQ_INT(tt_dtype_size(TT_C128), 16);
  EXPECT_STR(tt_dtype_text(TT_U8), "ui8");
  EXPECT_STR(tt_dtype_text(TT_C64), "complex<f32>");
  EXPECT_EQ_INT(tt_dtype_class(TT_BOOL), 'b');
  EXPECT_EQ_INT(tt_dtype_class(TT_F8E5M2), 'f');
}

TEST(type, unknown_dtypes_are_harmless) {
  EXPECT_EQ_INT(tt_dtype_size(TT_DTYPE_INVALID), 0);
  EXPECT_EQ_INT(tt_dtype_size((tt_dtype)200), 0);
  EXPECT_STR(tt_dtype_text((tt_dtype)200), "invalid");
  EXPECT_TRUE(!tt_dtype_is_float((tt_dtype)-1));
}

TEST(type, predicates_agree_with_classes) {
  EXPECT_TRUE(tt_dtype_is_float(TT_F16) && !tt_dtype_is_float(TT_C64) && !tt_dtype_is_float(TT_I8));
  EXPECT_TRUE(tt_dtype_is_complex(TT_C64) && !tt_dtype_is_complex(TT_F64));
  EXPECT_TRUE(tt_dtype_is_integral(TT_U64) && tt_dtype_is_integral(TT_I8) && !tt_dtype_is_integral(TT_BOOL));
  EXPECT_TRUE(tt_dtype_is_signed(TT_I8) && tt_dtype_is_signed(TT_F32) && tt_dtype_is_signed(TT_C64));
  EXPECT_TRUE(!tt_dtype_is_signed(TT_U32) && !tt_dtype_is_signed(TT_BOOL));
}

TEST(type, derived_dtypes) {
  EXPECT_EQ_INT(tt_dtype_real(TT_C64), TT_F32);
  EXPECT_EQ_INT(tt_dtype_real(TT_C128), TT_F64);
  EXPECT_EQ_INT(tt_dtype_real(TT_I32), TT_I32);
  EXPECT_EQ_INT(tt_dtype_complex(TT_F64), TT_C128);
  EXPECT_EQ_INT(tt_dtype_complex(TT_C128), TT_C128);
  EXPECT_EQ_INT(tt_dtype_complex(TT_F16), TT_C64);
  EXPECT_EQ_INT(tt_dtype_compute(TT_BF16), TT_F32);
  EXPECT_EQ_INT(tt_dtype_compute(TT_F8E8M0FNU), TT_F32);
  EXPECT_EQ_INT(tt_dtype_compute(TT_F64), TT_F64);
  EXPECT_EQ_INT(tt_dtype_compute(TT_I8), TT_I8);
}

TEST(type, elements_and_bytes) {
  tt_type matrix = tt_type_make(TT_F32, 2, (int64_t[]){2, 3});
  tt_type scalar = tt_type_scalar(TT_C128);
  tt_type empty = tt_type_make(TT_F64, 3, (int64_t[]){4, 0, 5});
  EXPECT_EQ_INT(tt_type_elements(&matrix), 6);
  EXPECT_EQ_INT(tt_type_bytes(&matrix), 24);
  EXPECT_EQ_INT(tt_type_elements(&scalar), 1);
  EXPECT_EQ_INT(tt_type_bytes(&scalar), 16);
  EXPECT_EQ_INT(tt_type_bytes(&empty), 0);
}

TEST(type, sizes_beyond_64_bits_saturate_and_zero_wins) {
  tt_type huge = tt_type_make(TT_F32, 3, (int64_t[]){INT64_C(1) << 40, INT64_C(1) << 40, 3});
  tt_type huge_empty = tt_type_make(TT_F32, 3, (int64_t[]){INT64_C(1) << 40, INT64_C(1) << 40, 0});
  tt_type many_bytes = tt_type_make(TT_C128, 1, (int64_t[]){INT64_C(1) << 60});
  EXPECT_EQ_INT(tt_type_elements(&huge), INT64_MAX);
  EXPECT_EQ_INT(tt_type_elements(&huge_empty), 0);
  EXPECT_EQ_INT(tt_type_bytes(&many_bytes), INT64_MAX);
}

TEST(type, equality_looks_at_dtype_sizes_and_bounds_only) {
  tt_type a = tt_type_make(TT_F32, 2, (int64_t[]){2, 3});
  tt_type b = a;
  b.dims[5] = 77;  // beyond the rank
  EXPECT_TRUE(tt_type_equal(&a, &b));
  b.dtype = TT_F64;
  EXPECT_TRUE(!tt_type_equal(&a, &b) && tt_type_same_dims(&a, &b));
  b = a;
  b.bounded = 2;
  EXPECT_TRUE(!tt_type_equal(&a, &b) && !tt_type_same_dims(&a, &b));
  b = tt_type_make(TT_F32, 2, (int64_t[]){2, 4});
  EXPECT_TRUE(!tt_type_equal(&a, &b));
  b = tt_type_make(TT_F32, 1, (int64_t[]){2});
  EXPECT_TRUE(!tt_type_equal(&a, &b));
}

TEST(type, description) {
  char text[32];
  tt_type type = tt_type_make(TT_F32, 2, (int64_t[]){128, 3});
  EXPECT_STR(tt_type_describe(&type, text, sizeof text), "f32[128,3]");
  type.bounded = 1;
  EXPECT_STR(tt_type_describe(&type, text, sizeof text), "f32[<=128,3]");
  EXPECT_STR(tt_type_describe(&type, text, 6), "f32[<");
  type = tt_type_scalar(TT_BOOL);
  EXPECT_STR(tt_type_describe(&type, text, sizeof text), "i1[]");
}

TEST(type, more_dimensions_than_the_limit_are_a_bug_of_the_caller) {
  EXPECT_ABORTS((void)tt_type_make(TT_F32, TT_MAX_RANK + 1, (int64_t[TT_MAX_RANK + 1]){0}));
}
