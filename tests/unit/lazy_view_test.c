// SPDX-License-Identifier: Apache-2.0
//
// Views: what plan a view gets, and that reading and writing by the plan is what the strides say, byte by byte.
#include "lazy/view.h"

#include "pjrt/pjrt.h"
#include "run_support.h"

#define L(...) ((const int64_t[]){__VA_ARGS__})

static tt_view_plan plan_of(int base_rank, const int64_t* base_dims, int rank, const int64_t* sizes,
                            const int64_t* strides, int64_t offset) {
  tt_type base = tt_type_make(TT_F32, base_rank, base_dims);
  tt_view_plan plan;
  tt_view_analyse(&base, TT_F32, rank, sizes, strides, offset, &plan);
  return plan;
}

TEST(view, a_transpose_or_reshape_is_the_whole) {
  EXPECT_EQ_INT(plan_of(2, L(3, 4), 2, L(4, 3), L(1, 4), 0).kind, TT_VIEW_WHOLE);
  EXPECT_EQ_INT(plan_of(2, L(3, 4), 1, L(12), L(1), 0).kind, TT_VIEW_WHOLE);
  EXPECT_EQ_INT(plan_of(2, L(3, 4), 3, L(3, 7, 4), L(4, 0, 1), 0).kind, TT_VIEW_WHOLE);  // expanded
}

TEST(view, a_slice_is_a_box) {
  EXPECT_EQ_INT(plan_of(2, L(10, 8), 2, L(6, 5), L(8, 1), 26).kind, TT_VIEW_BOX);  // [3:9, 2:7]
  EXPECT_EQ_INT(plan_of(2, L(10, 8), 2, L(5, 4), L(16, 2), 0).kind, TT_VIEW_BOX);  // [::2, ::2]
  EXPECT_EQ_INT(plan_of(2, L(10, 8), 1, L(8), L(1), 24).kind, TT_VIEW_BOX);        // [3]
  EXPECT_EQ_INT(plan_of(1, L(80), 2, L(6, 5), L(8, 1), 26).kind, TT_VIEW_BOX);     // the first, of a flat base
}

TEST(view, a_run_across_rows_is_a_run) {
  EXPECT_EQ_INT(plan_of(2, L(10, 8), 1, L(20), L(1), 5).kind, TT_VIEW_RUN);
}

TEST(view, strides_that_fit_no_box_are_gathered) {
  EXPECT_EQ_INT(plan_of(1, L(10), 2, L(4, 3), L(1, 1), 0).kind, TT_VIEW_GATHER);
  EXPECT_EQ_INT(plan_of(1, L(20), 2, L(3, 3), L(3, 2), 0).kind, TT_VIEW_GATHER);
  EXPECT_EQ_INT(plan_of(1, L(20), 2, L(3, 2), L(3, 2), 4).kind, TT_VIEW_GATHER);  // at 3 it would be a box
}

TEST(view, nothing_is_empty) {
  EXPECT_EQ_INT(plan_of(1, L(10), 2, L(0, 3), L(3, 1), 0).kind, TT_VIEW_EMPTY);
}

TEST(view, a_view_that_fits_at_one_place_needs_no_offset) {
  EXPECT_TRUE(!plan_of(2, L(3, 4), 2, L(3, 4), L(4, 1), 0).needs_offset);
  EXPECT_TRUE(!plan_of(2, L(3, 1), 1, L(3), L(1), 0).needs_offset);
  EXPECT_TRUE(plan_of(2, L(3, 4), 2, L(3, 2), L(4, 1), 1).needs_offset);
}

// One plan, hence one program, for every place a window of that form can lie.
TEST(view, the_plan_does_not_change_with_the_offset) {
  tt_view_plan first = plan_of(2, L(10, 8), 2, L(2, 3), L(8, 1), 0);
  for (int row = 0; row <= 8; ++row) {
    for (int column = 0; column <= 5; ++column) {
      tt_view_plan other = plan_of(2, L(10, 8), 2, L(2, 3), L(8, 1), 8 * row + column);
      EXPECT_TRUE(memcmp(&first, &other, sizeof first) == 0);  // both were zeroed whole
    }
  }
}

TEST(view, only_the_base_as_it_stands_is_the_base) {
  tt_type base = tt_type_make(TT_F32, 2, L(3, 4));
  tensor t;
  describe(&t, NULL, TT_F32, 2, L(3, 4), NULL, 0);
  EXPECT_TRUE(tt_view_is_base(&base, &t.t));
  describe(&t, NULL, TT_F32, 2, L(3, 4), L(4, 1), 1);
  EXPECT_TRUE(!tt_view_is_base(&base, &t.t));
  describe(&t, NULL, TT_I32, 2, L(3, 4), NULL, 0);
  EXPECT_TRUE(!tt_view_is_base(&base, &t.t));
  describe(&t, NULL, TT_F32, 2, L(4, 3), NULL, 0);
  EXPECT_TRUE(!tt_view_is_base(&base, &t.t));
  base = tt_type_make(TT_F32, 2, L(1, 4));
  describe(&t, NULL, TT_F32, 2, L(1, 4), L(99, 1), 0);  // the stride of one element says nothing
  EXPECT_TRUE(tt_view_is_base(&base, &t.t));
}

TEST(view, gaps_and_overlaps_are_not_dense) {
  tt_type type;
  EXPECT_TRUE(tt_view_dense_type(TT_F32, 2, L(3, 4), L(1, 3), &type));
  EXPECT_TRUE(type.dims[0] == 4 && type.dims[1] == 3);
  EXPECT_TRUE(!tt_view_dense_type(TT_F32, 2, L(3, 4), L(8, 1), &type));
  EXPECT_TRUE(!tt_view_dense_type(TT_F32, 2, L(3, 4), L(0, 1), &type));
  EXPECT_TRUE(tt_view_dense_type(TT_F32, 2, L(0, 4), L(77, 1), &type));
}

// ---- against the strides --------------------------------------------------------------------------------------------------

typedef struct sample {
  tt_type base;
  tensor view;
  int64_t bytes;                  // of the base
  unsigned char before[4096];     // the base's bytes
  unsigned char elements[16384];  // the view's, as the strides say; then what is written
  int64_t count;
} sample;

static uint64_t state = UINT64_C(88172645463325252);
static int64_t below(int64_t n) {
  state ^= state << 13;
  state ^= state >> 7;
  state ^= state << 17;
  return (int64_t)(state % (uint64_t)n);
}

// Bytes that make a finite number in every dtype, and 0 or 1 for bool.
static void fill_bytes(unsigned char* bytes, int64_t n, bool is_bool) {
  for (int64_t i = 0; i < n; ++i) {
    bytes[i] = (unsigned char)(is_bool ? below(2) : below(64));
  }
}

// Copies each element of the view, in row-major order, between its place in `storage` and `elements`.
static void by_strides(const sample* s, unsigned char* storage, unsigned char* elements, bool write) {
  int64_t position[8] = {0};
  size_t size = tt_dtype_size(s->view.t.dtype);
  for (int64_t k = 0; k < s->count; ++k) {
    int64_t at = s->view.t.offset;
    for (int d = 0; d < s->view.t.rank; ++d) {
      at += position[d] * s->view.strides[d];
    }
    unsigned char* here = storage + (size_t)at * size;
    unsigned char* there = elements + (size_t)k * size;
    memcpy(write ? here : there, write ? there : here, size);
    for (int d = s->view.t.rank - 1; d >= 0 && ++position[d] == s->view.sizes[d]; --d) {
      position[d] = 0;
    }
  }
}

typedef struct runner {
  tt_plugin* plugin;
  tt_client* client;
} runner;

static runner open_runner(void) {
  runner r = {NULL, NULL};
  begin();
  EXPECT_OK(tt_plugin_load(TT_FAKE_PLUGIN, &r.plugin));
  EXPECT_OK(tt_client_create(r.plugin, 0, NULL, &r.client));
  return r;
}
static void close_runner(runner* r) {
  tt_client_release(r->client);
  tt_plugin_release(r->plugin);
  end();
}

// Compiles and runs f(base, offset[, value]) and compares its result with `want`.
static void expect_result(const runner* r, const sample* s, bool write, const unsigned char* want, int64_t want_bytes) {
  static unsigned char got[16384];
  tt_builder* b = tt_builder_create();
  tt_type scalar = tt_type_scalar(TT_I64);
  tt_type value_type = tt_type_make(s->view.t.dtype, s->view.t.rank, s->view.sizes);
  tt_view_plan plan;
  tt_view_analyse(&s->base, s->view.t.dtype, s->view.t.rank, s->view.sizes, s->view.strides, s->view.t.offset, &plan);
  tt_val base = tt_param(b, &s->base);
  tt_val offset = tt_param(b, &scalar);
  tt_val result = write ? tt_view_write(b, base, &s->view.t, &plan, offset, tt_param(b, &value_type))
                        : tt_view_read(b, base, &s->view.t, &plan, offset);
  char* text = NULL;
  tt_exec* exec = NULL;
  tt_buffer* in[3] = {NULL, NULL, NULL};
  tt_buffer* out = NULL;
  EXPECT_OK(tt_builder_finish(b, "view", 1, &result, &text));
  EXPECT_OK(tt_exec_compile(r->client, text != NULL ? text : "", text != NULL ? strlen(text) : 0, NULL, &exec));
  EXPECT_OK(tt_buffer_from_host(r->client, NULL, &s->base, s->before, NULL, NULL, &in[0]));
  EXPECT_OK(tt_buffer_from_host(r->client, NULL, &scalar, &s->view.t.offset, NULL, NULL, &in[1]));
  EXPECT_OK(tt_buffer_from_host(r->client, NULL, &value_type, s->elements, NULL, NULL, &in[2]));
  if (exec != NULL) {
    EXPECT_OK(tt_exec_run(exec, NULL, write ? 3 : 2, in, NULL, &out));
    EXPECT_OK(tt_buffer_to_host(out, got, (size_t)want_bytes));
    EXPECT_TRUE(memcmp(got, want, (size_t)want_bytes) == 0);
  }
  tt_buffer_release(out);
  for (int i = 0; i < 3; ++i) {
    tt_buffer_release(in[i]);
  }
  tt_exec_release(exec);
  tt_builder_destroy(b);
  free(text);
}

static void check(const runner* r, sample* s, bool may_write) {
  static unsigned char want[4096];
  tt_type type = tt_type_make(s->view.t.dtype, s->view.t.rank, s->view.sizes);
  s->count = tt_type_elements(&type);
  int64_t bytes = tt_type_bytes(&type);
  by_strides(s, s->before, s->elements, false);
  expect_result(r, s, false, s->elements, bytes);
  if (may_write) {
    fill_bytes(s->elements, bytes, s->view.t.dtype == TT_BOOL);
    memcpy(want, s->before, (size_t)s->bytes);
    by_strides(s, want, s->elements, true);
    expect_result(r, s, true, want, s->bytes);
  }
}

static void set_base(sample* s, tt_dtype dtype, int rank, const int64_t* dims) {
  s->base = tt_type_make(dtype, rank, dims);
  s->bytes = tt_type_bytes(&s->base);
  fill_bytes(s->before, s->bytes, dtype == TT_BOOL);
}

typedef struct chain {
  int rank;
  int64_t sizes[8], strides[8], offset;
  bool repeats;  // an element stands in the view more than once
} chain;

static void slice_step(chain* c, int d) {  // x[start::step], cut at some length
  int64_t start = below(c->sizes[d]);
  int64_t step = 1 + below(3);
  c->offset += start * c->strides[d];
  c->sizes[d] = 1 + below((c->sizes[d] - start + step - 1) / step);
  c->strides[d] *= step;
}
static void swap_step(chain* c, int d, int e) {
  int64_t size = c->sizes[d];
  int64_t stride = c->strides[d];
  c->sizes[d] = c->sizes[e];
  c->strides[d] = c->strides[e];
  c->sizes[e] = size;
  c->strides[e] = stride;
}
static void expand_step(chain* c, int d) {  // unsqueeze, then expand
  for (int k = c->rank++; k > d; --k) {
    c->sizes[k] = c->sizes[k - 1];
    c->strides[k] = c->strides[k - 1];
  }
  c->sizes[d] = 1 + below(2);
  c->strides[d] = 0;
  c->repeats |= c->sizes[d] > 1;
}
static void select_step(chain* c, int d) {  // x[index]
  c->offset += below(c->sizes[d]) * c->strides[d];
  --c->rank;
  for (int k = d; k < c->rank; ++k) {
    c->sizes[k] = c->sizes[k + 1];
    c->strides[k] = c->strides[k + 1];
  }
}

// A random chain of views of the base; false if it must not be written to.
static bool random_view(sample* s, tt_dtype dtype) {
  chain c = {.rank = s->base.dtype == dtype ? s->base.rank : 1};
  int64_t run = 1;
  for (int d = c.rank - 1; d >= 0; --d) {
    c.sizes[d] = s->base.dtype == dtype ? s->base.dims[d] : tt_view_base_elements(&s->base, dtype);
    c.strides[d] = run;
    run *= c.sizes[d];
  }
  for (int64_t steps = below(5); steps > 0; --steps) {
    int d = c.rank > 0 ? (int)below(c.rank) : 0;
    switch (below(5)) {
      case 0:
        if (c.rank > 1) {
          swap_step(&c, d, (int)below(c.rank));
        }
        break;
      case 1:
        if (c.rank < 6) {
          expand_step(&c, d);
        }
        break;
      case 2:
        if (c.rank > 0) {
          select_step(&c, d);
        }
        break;
      default:
        if (c.rank > 0) {
          slice_step(&c, d);
        }
        break;
    }
  }
  describe(&s->view, NULL, dtype, c.rank, c.sizes, c.strides, c.offset);
  return !c.repeats;
}

static sample s;

TEST(view, chains_of_views_read_and_write_what_strides_say) {
  runner r = open_runner();
  for (int i = 0; i < 300 && tt_test_failures == 0; ++i) {
    int64_t dims[4] = {1 + below(4), 1 + below(5), 1 + below(3), 1 + below(4)};
    set_base(&s, TT_F32, 1 + (int)below(4), dims);
    check(&r, &s, random_view(&s, TT_F32));
  }
  close_runner(&r);
}

TEST(view, any_strides_at_all_are_read) {
  runner r = open_runner();
  for (int i = 0; i < 150 && tt_test_failures == 0; ++i) {
    int64_t elements = 24 + below(40);
    int64_t sizes[3] = {1 + below(3), 1 + below(4), 1 + below(3)};
    int64_t strides[3] = {below(6), below(5), below(4)};
    int64_t reach = 0;
    for (int d = 0; d < 3; ++d) {
      reach += (sizes[d] - 1) * strides[d];
    }
    set_base(&s, TT_I64, 1, &elements);
    describe(&s.view, NULL, TT_I64, 3, sizes, strides, below(elements - reach));
    check(&r, &s, false);
  }
  close_runner(&r);
}

TEST(view, a_gathered_view_is_written) {
  runner r = open_runner();
  set_base(&s, TT_F32, 1, L(20));
  describe(&s.view, NULL, TT_F32, 2, L(3, 2), L(3, 2), 4);
  check(&r, &s, true);
  describe(&s.view, NULL, TT_F32, 3, L(2, 3, 2), L(7, 2, 1), 1);
  check(&r, &s, true);
  close_runner(&r);
}

TEST(view, another_dtype_sees_the_same_bytes) {
  static const tt_dtype pairs[][2] = {
      {TT_F32,  TT_I32},
      {TT_I64,  TT_I32},
      {TT_I32,  TT_I64},
      {TT_U8,   TT_I32},
      {TT_F64,  TT_F32},
      {TT_F32,  TT_U8 },
      {TT_C64,  TT_F32},
      {TT_F32,  TT_C64},
      {TT_I16,  TT_U8 },
      {TT_BOOL, TT_U8 },
      {TT_F16,  TT_I16},
      {TT_BF16, TT_U16},
      {TT_C128, TT_F64},
      {TT_C64,  TT_C64},
  };
  runner r = open_runner();
  for (size_t p = 0; p < sizeof pairs / sizeof *pairs; ++p) {
    for (int i = 0; i < 12 && tt_test_failures == 0; ++i) {
      int64_t dims[2] = {2 + below(3), 4 + below(3)};
      set_base(&s, pairs[p][0], 2, dims);
      bool distinct = random_view(&s, pairs[p][1]);
      check(&r, &s, distinct && pairs[p][0] != TT_BOOL);  // a bool holds 0 or 1 only
    }
  }
  close_runner(&r);
}
