// SPDX-License-Identifier: Apache-2.0
//
// See run_support.h.
#define _GNU_SOURCE 1
#include "run_support.h"

#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <stdlib.h>

#include "base/knobs.h"
#include "base/mem.h"
#include "ops/op.h"
#include "run/device.h"

// Knobs are read once a process: before any test does.
__attribute__((constructor)) static void choose_fake_plugin(void) {
  if (!is_child()) {
    (void)setenv("TORCH_TPU_PLUGIN", TT_FAKE_PLUGIN, 1);
    (void)setenv("TORCH_TPU_CACHE_DIR", "none", 1);
  }
}

// ---- the plugin -----------------------------------------------------------------------------------------------------------

static const fake_control* control_of(const char* path) {
  void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  void* symbol = library != NULL ? dlsym(library, "fake_pjrt_control") : NULL;
  TT_CHECK(symbol != NULL);
  fake_control_fn get = NULL;
  memcpy(&get, &symbol, sizeof get);
  return get();
}

const fake_control* fake(void) {
  static const fake_control* control;
  if (control == NULL) {
    control = control_of(TT_FAKE_PLUGIN);
  }
  return control;
}

void begin(void) {
  tt_runtime_stop();
  fake()->reset();
  EXPECT_OK(tt_mode_set(TT_MODE_STRICT));
}

void end(void) {
  fake()->delay(false);
  EXPECT_OK(tt_mode_set(TT_MODE_STRICT));
  tt_runtime_stop();
  fake()->reset();
  tt_set_where(NULL);
  EXPECT_EQ_INT(fake()->live(), 0);
  EXPECT_EQ_INT(fake()->bytes_in_use(), 0);
}

char* temporary_folder(void) {
  const char* root = getenv("TMPDIR");
  tt_strbuf path = {0};
  tt_strbuf_addf(&path, "%s/tt_unit.XXXXXX", root != NULL && *root != '\0' ? root : "/tmp");
  TT_CHECK(mkdtemp(path.text) != NULL);
  return tt_strbuf_take(&path);
}

void remove_folder(const char* path) {
  DIR* dir = opendir(path);
  if (dir != NULL) {
    for (struct dirent* d = readdir(dir); d != NULL; d = readdir(dir)) {
      (void)unlinkat(dirfd(dir), d->d_name, 0);
    }
    (void)closedir(dir);
    (void)rmdir(path);
  }
}

const fake_control* fake_copy(char** out_path) {
  char* folder = temporary_folder();
  tt_strbuf path = {0};
  tt_strbuf_addf(&path, "%s.so", folder);
  (void)rmdir(folder);
  free(folder);
  int from = open(TT_FAKE_PLUGIN, O_RDONLY | O_CLOEXEC);
  int to = open(path.text, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0755);
  TT_CHECK(from >= 0 && to >= 0);
  char piece[65536];
  for (ssize_t n = 0; (n = read(from, piece, sizeof piece)) > 0;) {
    TT_CHECK(write(to, piece, (size_t)n) == n);
  }
  (void)close(from);
  (void)close(to);
  *out_path = tt_strbuf_take(&path);
  return control_of(*out_path);
}

// ---- other processes ------------------------------------------------------------------------------------------------------

bool is_child(void) {
  return getenv("TT_TEST_CHILD") != NULL;
}

static void become_child(const char* name, const char* const* assignments, int errors) {
  int nowhere = open("/dev/null", O_WRONLY);
  (void)dup2(nowhere, STDOUT_FILENO);
  (void)dup2(errors, STDERR_FILENO);
  (void)setenv("TORCH_TPU_PLUGIN", TT_FAKE_PLUGIN, 1);
  (void)setenv("TORCH_TPU_CACHE_DIR", "none", 1);
  for (; *assignments != NULL; ++assignments) {
    (void)putenv(tt_strdup(*assignments));
  }
  (void)setenv("TT_TEST_CHILD", "1", 1);
  (void)execl("/proc/self/exe", "tt_unit", name, (char*)NULL);
  _exit(127);
}

char* run_child(const char* name, const char* const* assignments) {
  int ends[2];
  TT_CHECK(pipe2(ends, O_CLOEXEC) == 0);
  (void)fflush(stdout);
  pid_t child = fork();
  if (child == 0) {
    become_child(name, assignments, ends[1]);
  }
  (void)close(ends[1]);
  tt_strbuf text = {0};
  char piece[512];
  for (ssize_t n = 0; (n = read(ends[0], piece, sizeof piece)) > 0;) {
    tt_strbuf_addn(&text, piece, (size_t)n);
  }
  (void)close(ends[0]);
  int status = -1;
  (void)waitpid(child, &status, 0);
  char* written = tt_strbuf_take(&text);
  if (status != 0) {
    tt_test_fail(name, 0, "expected the test to pass in a process of its own, which wrote: %s", written);
    free(written);
    return NULL;
  }
  return written;
}

// ---- tensors --------------------------------------------------------------------------------------------------------------

void describe(tensor* out, tt_storage* storage, tt_dtype dtype, int rank, const int64_t* sizes, const int64_t* strides,
              int64_t offset) {
  memset(out, 0, sizeof *out);
  out->t = (tt_tensor){
      .storage = storage, .sizes = out->sizes, .strides = out->strides, .offset = offset, .rank = rank, .dtype = dtype};
  int64_t run = 1;
  for (int d = rank - 1; d >= 0; --d) {
    out->sizes[d] = sizes[d];
    out->strides[d] = strides != NULL ? strides[d] : run;
    run *= sizes[d];
  }
}

void make(tensor* out, tt_dtype dtype, int rank, const int64_t* sizes, const void* bytes) {
  tt_type type = tt_type_make(dtype, rank, sizes);
  describe(out, NULL, dtype, rank, sizes, NULL, 0);
  EXPECT_OK(tt_storage_create(0, dtype, rank, out->sizes, out->strides, tt_type_bytes(&type), &out->t.storage));
  if (bytes != NULL) {
    EXPECT_OK(tt_copy_from_host(&out->t, bytes));
  }
}

void make_f32(tensor* out, int n, const float* values) {
  make(out, TT_F32, 1, (const int64_t[]){n}, values);
}

void view(tensor* out, const tensor* base, int rank, const int64_t* sizes, const int64_t* strides, int64_t offset) {
  describe(out, base->t.storage, base->t.dtype, rank, sizes, strides, offset);
}

void number(tensor* out, double value) {
  describe(out, NULL, TT_F64, 0, NULL, NULL, 0);
  out->t.wrapped = true;
  out->t.host = (tt_scalar){.kind = 'f', .re = value};
}

void drop(tensor* t) {
  tt_storage_release(t->t.storage);
  t->t.storage = NULL;
}

void expect_f32(const tensor* t, int n, const float* values, const char* file, int line) {
  float got[256];
  TT_CHECK(n <= 256);
  if (!tt_test_status(tt_copy_to_host(&t->t, got), TT_OK, NULL, "reading", file, line)) {
    return;
  }
  for (int i = 0; i < n; ++i) {
    if (got[i] != values[i]) {
      tt_test_fail(file, line, "expected element %d to be %g, got %g", i, (double)values[i], (double)got[i]);
    }
  }
}

// ---- calls ----------------------------------------------------------------------------------------------------------------

const tt_op* find_op(const char* start) {
  for (int i = 0; i < tt_op_count(); ++i) {
    if (strncmp(tt_op_schema(tt_op_at(i)), start, strlen(start)) == 0) {
      return tt_op_at(i);
    }
  }
  tt_check_failed(start, __FILE__, __LINE__);
}

tt_argument tensor_arg(const tensor* t) {
  return (tt_argument){.kind = TT_ARG_TENSOR, .count = 1, .tensors = &t->t};
}
tt_argument number_arg(double value) {
  return (tt_argument){
      .kind = TT_ARG_FLOAT, .runtime = true, .number = {.kind = 'f', .re = value}
  };
}

tt_status call(tt_overload* overload, int n, tt_argument* args, int num_metas, const tt_meta* metas,
               tt_outputs* outputs) {
  tt_call c = {.overload = overload, .num_args = n, .args = args};
  for (int tries = 0; tries < 3; ++tries) {
    bool hit = false;
    TT_TRY(tt_call_run(&c, outputs, &hit));
    if (hit) {
      return NULL;
    }
    TT_TRY(tt_call_lower(&c, num_metas, metas));
  }
  TT_FAIL(TT_INTERNAL, "expected a plan that was made to be found");
}

static tt_meta meta_like(const tensor* t, tt_dtype dtype) {
  tt_meta meta = {.dtype = dtype, .rank = t->t.rank};
  int64_t run = 1;
  for (int d = t->t.rank - 1; d >= 0; --d) {
    meta.sizes[d] = t->sizes[d];
    meta.strides[d] = run;
    run *= t->sizes[d];
  }
  return meta;
}

static const tensor* tensor_of(const tt_argument* arg) {
  const tensor* t = NULL;
  const void* p = arg->tensors;  // the first member of its tensor
  memcpy(&t, &p, sizeof t);
  return t;
}

static tt_status run_new(tt_overload* overload, int n, tt_argument* args, const tt_meta* meta, tensor* out) {
  tt_outputs outputs;
  describe(out, NULL, meta->dtype, meta->rank, meta->sizes, meta->strides, 0);
  TT_TRY(call(overload, n, args, 1, meta, &outputs));
  out->t.storage = outputs.items[0].storage;
  tt_outputs_deinit(&outputs);
  return NULL;
}

tt_status run_out(tt_overload* overload, int n, tt_argument* args, tt_dtype dtype, tensor* out) {
  tt_meta meta = meta_like(tensor_of(&args[0]), dtype);
  return run_new(overload, n, args, &meta, out);
}

tt_status run_in_place(tt_overload* overload, int n, tt_argument* args) {
  tt_outputs outputs;
  tt_meta meta = meta_like(tensor_of(&args[0]), args[0].tensors->dtype);
  TT_TRY(call(overload, n, args, 1, &meta, &outputs));
  tt_outputs_deinit(&outputs);
  return NULL;
}

// An overload is made once and lives as long as the process.
static tt_overload* overload_of(tt_overload** slot, const char* name, const char* schema, int args, bool in_place) {
  if (*slot == NULL) {
    int alias = in_place ? 0 : -1;
    *slot = tt_overload_create(name, find_op(schema), args, in_place ? 1 : 0, 1, &alias);
  }
  return *slot;
}

tt_status add(const tensor* x, const tensor* y, double alpha, tensor* out) {
  static tt_overload* overload;
  tt_argument args[3] = {tensor_arg(x), tensor_arg(y), number_arg(alpha)};
  return run_out(overload_of(&overload, "add.Tensor", "add.Tensor(", 3, false), 3, args, x->t.dtype, out);
}

tt_status add_in_place(const tensor* x, const tensor* y, double alpha) {
  static tt_overload* overload;
  tt_argument args[3] = {tensor_arg(x), tensor_arg(y), number_arg(alpha)};
  return run_in_place(overload_of(&overload, "add_.Tensor", "add.Tensor(", 3, true), 3, args);
}

tt_status mul(const tensor* x, const tensor* y, tensor* out) {
  static tt_overload* overload;
  tt_argument args[2] = {tensor_arg(x), tensor_arg(y)};
  return run_out(overload_of(&overload, "mul.Tensor", "mul.Tensor(", 2, false), 2, args, x->t.dtype, out);
}

tt_status fill(const tensor* x, double value) {
  static tt_overload* overload;
  tt_argument args[2] = {tensor_arg(x), number_arg(value)};
  return run_in_place(overload_of(&overload, "fill_.Scalar", "fill.Scalar(", 2, true), 2, args);
}

TT_OP(test_take, "test_take(Tensor self, Tensor index) -> Tensor") {
  tt_val values = tt_arg(L, 0);
  int64_t n = tt_dim_of(b, values, 0);
  tt_val index = tt_check_index(L, tt_arg(L, 1), n, true);
  int64_t column[2] = {tt_dim_of(b, index, 0), 1};
  tt_gather_dims dims = {.num_collapsed = 1, .num_start_map = 1, .index_vector_dim = 1};
  int64_t one[1] = {1};
  tt_out(L, 0, tt_gather(b, values, tt_reshape(b, index, 2, column), &dims, one));
}

tt_status take(const tensor* values, const tensor* index, tensor* out) {
  static tt_overload* overload;
  tt_argument args[2] = {tensor_arg(values), tensor_arg(index)};
  tt_meta meta = meta_like(index, values->t.dtype);
  return run_new(overload_of(&overload, "test_take", "test_take(", 2, false), 2, args, &meta, out);
}
