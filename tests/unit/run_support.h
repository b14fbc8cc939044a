// SPDX-License-Identifier: Apache-2.0
//
// What tests of the runtime share: the fake plugin with its knobs, a runtime that starts afresh for each test, small tensors,
// and calls of table entries as PyTorch's kernels make them (run; on a miss, lower and run again).
//
//     TEST(run, x) {
//       begin();
//       tensor a = ...; ... drop(&a);
//       end();          // fails the test if anything is left, here or in the plugin
//     }
#ifndef TESTS_UNIT_RUN_SUPPORT_H
#define TESTS_UNIT_RUN_SUPPORT_H

#include "fake_pjrt/fake.h"
#include "tt/call.h"
#include "tt_test.h"

const fake_control* fake(void);  // of the library at TT_FAKE_PLUGIN, which is also the plugin of every test here
void begin(void);
void end(void);

// A fresh copy of the plugin, with knobs of its own; the caller frees and unlinks the path.
const fake_control* fake_copy(char** out_path);
char* temporary_folder(void);  // made; the caller frees the path
void remove_folder(const char* path);

// Runs the test `name` ("room.sentence") alone in a new process with these assignments ("A=1", ..., NULL); the test sees
// is_child(). Returns what it wrote to stderr, the caller's; NULL (and a failure noted) if it failed there.
bool is_child(void);
char* run_child(const char* name, const char* const* assignments);

// ---- tensors --------------------------------------------------------------------------------------------------------------
// Filled in place: `t` points to the arrays beside it, so a tensor is not copied.
typedef struct tensor {
  tt_tensor t;
  int64_t sizes[8], strides[8];
} tensor;
void describe(tensor* out, tt_storage* storage, tt_dtype dtype, int rank, const int64_t* sizes, const int64_t* strides,
              int64_t offset);
void make(tensor* out, tt_dtype dtype, int rank, const int64_t* sizes, const void* bytes);  // bytes NULL: not written
void make_f32(tensor* out, int n, const float* values);                                     // 1-d
void view(tensor* out, const tensor* base, int rank, const int64_t* sizes, const int64_t* strides, int64_t offset);
void number(tensor* out, double value);  // a wrapped Python float
void drop(tensor* t);                    // releases the storage (not of views)
// Reads it, expecting these values.
void expect_f32(const tensor* t, int n, const float* values, const char* file, int line);
#define EXPECT_F32(t, n, ...) expect_f32((t), (n), (const float[]){__VA_ARGS__}, __FILE__, __LINE__)

// ---- calls ----------------------------------------------------------------------------------------------------------------
const tt_op* find_op(const char* schema_start);
tt_argument tensor_arg(const tensor* t);
tt_argument number_arg(double value);  // a run-time Scalar
// One output, a new tensor of the first argument's sizes and `dtype`.
tt_status run_out(tt_overload* overload, int n, tt_argument* args, tt_dtype dtype, tensor* out);
// The output is argument 0.
tt_status run_in_place(tt_overload* overload, int n, tt_argument* args);
tt_status call(tt_overload* overload, int n, tt_argument* args, int num_metas, const tt_meta* metas,
               tt_outputs* outputs);

tt_status add(const tensor* x, const tensor* y, double alpha, tensor* out);
tt_status add_in_place(const tensor* x, const tensor* y, double alpha);
tt_status mul(const tensor* x, const tensor* y, tensor* out);
tt_status fill(const tensor* x, double value);
// take(values, index) -> values[index], with index checks; an entry of this program's own.
tt_status take(const tensor* values, const tensor* index, tensor* out);

#endif  // TESTS_UNIT_RUN_SUPPORT_H
