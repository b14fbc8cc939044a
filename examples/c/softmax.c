// SPDX-License-Identifier: Apache-2.0
//
// The C API without PyTorch: builds softmax(x), compiles it and runs it on the default device.
//   TORCH_TPU_PLUGIN=/path/of/a/pjrt/plugin.so build/dev/example_softmax
#include <stdio.h>
#include <stdlib.h>

#include "tt/hlo.h"
#include "tt/program.h"

enum { ROWS = 2, COLUMNS = 4 };

// A failed step of the builder is remembered; tt_builder_finish reports the first.
static tt_status build(const tt_type* type, char** out_text) {
  tt_builder* b = tt_builder_create();
  tt_val x = tt_param(b, type);
  tt_val shifted = tt_sub(b, x, tt_max_keep(b, x, 1));
  tt_val powers = tt_unary(b, TT_EXP, shifted);
  tt_val result = tt_div(b, powers, tt_sum_keep(b, powers, 1));
  tt_status status = tt_builder_finish(b, "softmax", 1, &result, out_text);
  tt_builder_destroy(b);
  return status;
}

static tt_status run(void) {
  const int64_t dims[] = {ROWS, COLUMNS};
  const tt_type type = tt_type_make(TT_F32, 2, dims);
  char* text = NULL;
  TT_TRY(build(&type, &text));
  printf("%s\n", text);

  tt_program* program = NULL;
  tt_status status = tt_program_compile(0, text, &program);
  free(text);
  TT_TRY(status);

  float x[ROWS][COLUMNS] = {
      {1, 2, 3, 4},
      {0, 0, 0, 0}
  };
  float y[ROWS][COLUMNS] = {{0}};
  status = tt_program_run(program, 1, &(tt_array){type, x}, 1, &(tt_array){type, y});
  tt_program_release(program);
  TT_TRY(status);

  for (int i = 0; i < ROWS; ++i) {
    for (int j = 0; j < COLUMNS; ++j) {
      printf("%s%.4f", j == 0 ? "" : " ", (double)y[i][j]);
    }
    printf("\n");
  }
  return NULL;
}

int main(void) {
  tt_status status = run();
  if (status != NULL) {
    fprintf(stderr, "%s: %s\n", tt_code_name(tt_status_code(status)), tt_status_text(status));
    tt_status_free(status);
    return 1;
  }
  return 0;
}
