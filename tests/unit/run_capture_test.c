// SPDX-License-Identifier: Apache-2.0
//
// Capture: calls made inside become one program, the plan of the call outside.
#include "lazy/tensor.h"
#include "run_support.h"

static const float one_two_three[3] = {1, 2, 3};

// outer(x, y) = x + (x * y), by captured calls; in place: x += x * y.
static tt_overload* outer(bool in_place) {
  static tt_overload* made[2];
  int alias = in_place ? 0 : -1;
  if (made[in_place] == NULL) {
    made[in_place] = tt_overload_create(in_place ? "outer_" : "outer", NULL, 2, in_place ? 1 : 0, 1, &alias);
  }
  return made[in_place];
}

typedef struct inside {
  tensor t;
  tt_meta meta;
} inside;

static void enter(tt_capture* capture, int slot, inside* out) {
  tt_storage* storage = NULL;
  EXPECT_OK(tt_capture_input(capture, slot, &storage, &out->meta));
  describe(&out->t, storage, out->meta.dtype, out->meta.rank, out->meta.sizes, out->meta.strides, 0);
}

// A captured call of two tensors.
static tt_status inner(const char* schema, const tensor* x, const tensor* y, bool in_place, tensor* out) {
  static tt_overload *sum, *product, *sum_in_place;
  bool is_sum = strncmp(schema, "add", 3) == 0;
  tt_overload** slot = in_place ? &sum_in_place : is_sum ? &sum : &product;
  int alias = in_place ? 0 : -1;
  if (*slot == NULL) {
    *slot = tt_overload_create("inner", find_op(schema), is_sum ? 3 : 2, in_place ? 1 : 0, 1, &alias);
  }
  tt_argument args[3] = {tensor_arg(x), tensor_arg(y), number_arg(1)};
  tt_call c = {.overload = *slot, .num_args = is_sum ? 3 : 2, .args = args};
  tt_meta meta = {.dtype = x->t.dtype, .rank = x->t.rank};
  memcpy(meta.sizes, x->sizes, sizeof x->sizes);
  memcpy(meta.strides, x->strides, sizeof x->strides);
  tt_outputs outputs;
  TT_TRY(tt_capture_call(&c, 1, &meta, &outputs));
  if (!in_place) {
    describe(out, outputs.items[0].storage, meta.dtype, meta.rank, meta.sizes, NULL, 0);
  }
  tt_outputs_deinit(&outputs);
  return NULL;
}

// Runs the outer call; captures it if its plan is not known.
static tt_status run_outer(bool in_place, const tensor* x, const tensor* y, tensor* out) {
  tt_argument args[2] = {tensor_arg(x), tensor_arg(y)};
  tt_call c = {.overload = outer(in_place), .num_args = 2, .args = args};
  tt_outputs outputs;
  bool hit = false;
  TT_TRY(tt_call_run(&c, &outputs, &hit));
  if (!hit) {
    tt_capture* capture = NULL;
    inside a, b;
    tensor product, result;
    TT_TRY(tt_capture_begin(&c, &capture));
    EXPECT_TRUE(tt_capture_current() == capture);
    enter(capture, 0, &a);
    enter(capture, 1, &b);
    EXPECT_OK(inner("mul.Tensor(", &a.t, &b.t, false, &product));
    if (in_place) {
      EXPECT_OK(inner("add.Tensor(", &a.t, &product, true, NULL));
    } else {
      EXPECT_OK(inner("add.Tensor(", &a.t, &product, false, &result));
    }
    tt_status status = tt_capture_end(capture, 1, in_place ? &a.t.t : &result.t);
    EXPECT_TRUE(tt_capture_current() == NULL);
    drop(&a.t);
    drop(&b.t);
    drop(&product);
    if (!in_place) {
      drop(&result);
    }
    TT_TRY(status);
    TT_TRY(tt_call_run(&c, &outputs, &hit));
    EXPECT_TRUE(hit);
  }
  if (out != NULL) {
    describe(out, outputs.items[0].storage, x->t.dtype, x->t.rank, x->sizes, NULL, 0);
  }
  tt_outputs_deinit(&outputs);
  return NULL;
}

TEST(capture, calls_inside_become_one_program) {
  begin();
  tensor x, y, z;
  tt_stats before;
  tt_stats after;
  make_f32(&x, 3, one_two_three);
  make_f32(&y, 3, one_two_three);
  tt_stats_get(&before);
  EXPECT_OK(run_outer(false, &x, &y, &z));
  EXPECT_F32(&z, 3, 2, 6, 12);
  drop(&z);
  EXPECT_OK(run_outer(false, &x, &y, &z));
  EXPECT_F32(&z, 3, 2, 6, 12);
  tt_stats_get(&after);
  EXPECT_EQ_INT(after.compiled - before.compiled, 1);
  EXPECT_EQ_INT(after.launches - before.launches, 2);
  drop(&z);
  drop(&x);
  drop(&y);
  end();
}

TEST(capture, a_write_inside_reaches_the_tensor_outside) {
  begin();
  tensor base, x, y;
  make(&base, TT_F32, 2, (const int64_t[]){2, 3}, (const float[]){1, 2, 3, 4, 5, 6});
  make_f32(&y, 2, (const float[]){10, 100});
  view(&x, &base, 1, (const int64_t[]){2}, (const int64_t[]){3}, 1);  // a column
  EXPECT_OK(run_outer(true, &x, &y, NULL));
  EXPECT_F32(&base, 6, 1, 22, 3, 4, 505, 6);
  EXPECT_OK(run_outer(true, &x, &y, NULL));
  EXPECT_F32(&base, 6, 1, 242, 3, 4, 51005, 6);
  drop(&base);
  drop(&y);
  end();
}

TEST(capture, the_same_view_twice_is_one_stand_in) {
  begin();
  tensor x, z;
  make_f32(&x, 3, one_two_three);
  EXPECT_OK(run_outer(false, &x, &x, &z));
  EXPECT_F32(&z, 3, 2, 6, 12);
  EXPECT_OK(run_outer(true, &x, &x, NULL));
  EXPECT_F32(&x, 3, 2, 6, 12);
  drop(&x);
  drop(&z);
  end();
}

// Begins a capture of outer(x, x).
static tt_capture* begin_capture(tt_call* c, tt_argument args[2], const tensor* x) {
  tt_capture* capture = NULL;
  args[0] = args[1] = tensor_arg(x);
  *c = (tt_call){.overload = outer(false), .num_args = 2, .args = args};
  EXPECT_OK(tt_capture_begin(c, &capture));
  return capture;
}

TEST(capture, values_cannot_be_read_inside) {
  begin();
  tensor x;
  inside a;
  tt_call c;
  tt_argument args[2];
  float got[3];
  make_f32(&x, 3, one_two_three);
  tt_capture* capture = begin_capture(&c, args, &x);
  enter(capture, 0, &a);
  EXPECT_STATUS(tt_copy_to_host(&a.t.t, got), TT_FAILED_PRECONDITION, "captured code asks for the values of a tensor");
  tt_capture_abandon(capture);
  EXPECT_TRUE(tt_capture_current() == NULL);
  drop(&a.t);
  EXPECT_F32(&x, 3, 1, 2, 3);
  drop(&x);
  end();
}

TEST(capture, a_tensor_from_outside_is_refused_inside) {
  begin();
  tensor x, z;
  inside a;
  tt_call c;
  tt_argument args[2];
  make_f32(&x, 3, one_two_three);
  tt_capture* capture = begin_capture(&c, args, &x);
  enter(capture, 0, &a);
  EXPECT_STATUS(inner("mul.Tensor(", &a.t, &x, false, &z), TT_UNIMPLEMENTED,
                "captured code uses a tensor from outside");
  EXPECT_OK(inner("mul.Tensor(", &a.t, &a.t, false, &z));  // the capture goes on
  tt_capture_abandon(capture);
  drop(&z);
  drop(&a.t);
  drop(&x);
  end();
}

// A tensor that leaks out of captured code (a cache in a Python module) has no value: an error, not zeros.
TEST(capture, a_tensor_that_outlives_its_capture_is_refused) {
  begin();
  tensor x, y, z;
  inside a;
  tt_call c;
  tt_argument args[2];
  float got[3];
  make_f32(&x, 3, one_two_three);
  make_f32(&y, 3, one_two_three);
  tt_capture* capture = begin_capture(&c, args, &x);
  enter(capture, 0, &a);
  tt_capture_abandon(capture);
  EXPECT_STATUS(tt_copy_to_host(&a.t.t, got), TT_FAILED_PRECONDITION, "captured");
  EXPECT_STATUS(add(&a.t, &y, 1, &z), TT_FAILED_PRECONDITION, "captured");
  EXPECT_STATUS(tt_copy_on_device(&y.t, &a.t.t), TT_FAILED_PRECONDITION, "captured");
  // Nor does the next capture, which may lie where the last one lay, take it for its own.
  inside b;
  capture = begin_capture(&c, args, &x);
  enter(capture, 0, &b);
  EXPECT_STATUS(inner("mul.Tensor(", &b.t, &a.t, false, &z), TT_UNIMPLEMENTED,
                "captured code uses a tensor from outside");
  tt_capture_abandon(capture);
  EXPECT_F32(&y, 3, 1, 2, 3);
  drop(&a.t);
  drop(&b.t);
  drop(&x);
  drop(&y);
  end();
}

TEST(capture, host_data_inside_is_a_constant) {
  begin();
  tensor x, y, fresh, product;
  inside a;
  tt_call c;
  tt_argument args[2];
  make_f32(&x, 3, one_two_three);
  make_f32(&y, 3, one_two_three);
  args[0] = tensor_arg(&x);
  args[1] = tensor_arg(&y);
  static tt_overload* overload;
  int alias = -1;
  if (overload == NULL) {
    overload = tt_overload_create("times_constant", NULL, 2, 0, 1, &alias);
  }
  c = (tt_call){.overload = overload, .num_args = 2, .args = args};
  tt_capture* capture = NULL;
  REQUIRE_OK(tt_capture_begin(&c, &capture));
  enter(capture, 0, &a);
  make_f32(&fresh, 3, (const float[]){10, 20, 30});
  EXPECT_OK(inner("mul.Tensor(", &a.t, &fresh, false, &product));
  EXPECT_OK(tt_capture_end(capture, 1, &product.t));
  drop(&a.t);
  drop(&fresh);
  drop(&product);
  tt_outputs outputs;
  bool hit = false;
  REQUIRE_OK(tt_call_run(&c, &outputs, &hit));
  REQUIRE_TRUE(hit);
  describe(&product, outputs.items[0].storage, TT_F32, 1, x.sizes, NULL, 0);
  tt_outputs_deinit(&outputs);
  EXPECT_F32(&product, 3, 10, 40, 90);
  drop(&product);
  drop(&x);
  drop(&y);
  end();
}
