// SPDX-License-Identifier: Apache-2.0
//
// Compiles a layer of a network for a TPU that is not here and prints what it would need and cost.
//   build/dev/example_tpu7x /path/of/libtpu.so [topology]
#include <stdio.h>
#include <stdlib.h>

#include "tt/hlo.h"
#include "tt/program.h"

enum { BATCH = 1024, WIDTH = 4096, HIDDEN = 16384 };

// relu(x @ w) @ v in bfloat16.
static tt_status build(char** out_text) {
  const tt_type x_type = tt_type_make(TT_BF16, 2, (const int64_t[]){BATCH, WIDTH});
  const tt_type w_type = tt_type_make(TT_BF16, 2, (const int64_t[]){WIDTH, HIDDEN});
  const tt_type v_type = tt_type_make(TT_BF16, 2, (const int64_t[]){HIDDEN, WIDTH});
  tt_builder* b = tt_builder_create();
  tt_builder_set_precision(b, 0);  // bfloat16 products in one pass
  tt_val x = tt_param(b, &x_type);
  tt_val w = tt_param(b, &w_type);
  tt_val v = tt_param(b, &v_type);
  tt_val hidden = tt_matmul(b, x, w);
  tt_val active = tt_max(b, hidden, tt_like_f(b, hidden, 0.0));
  tt_val result = tt_matmul(b, active, v);
  tt_status status = tt_builder_finish(b, "layer", 1, &result, out_text);
  tt_builder_destroy(b);
  return status;
}

static void print_cost(const char* name, double value, void* ctx) {
  (void)ctx;
  printf("  %-40s %.6g\n", name, value);
}

static tt_status run(const char* plugin, const char* topology) {
  char* text = NULL;
  TT_TRY(build(&text));
  printf("compiled for %s by %s\n", topology, plugin);
  printf("cost:\n");
  tt_program_report report;
  tt_status status = tt_program_analyze(plugin, topology, text, &report, print_cost, NULL);
  free(text);
  TT_TRY(status);
  const double mib = 1024.0 * 1024.0;
  printf("memory of one of %d devices, MiB:\n", report.device_count);
  printf("  code %.2f, arguments %.2f, outputs %.2f, temporaries %.2f, peak %.2f\n", (double)report.code_bytes / mib,
         (double)report.argument_bytes / mib, (double)report.output_bytes / mib, (double)report.temporary_bytes / mib,
         (double)report.peak_bytes / mib);
  return NULL;
}

int main(int argc, char** argv) {
  if (argc < 2) {
    printf("skipped: no path of libtpu.so given (pip install libtpu, then .../site-packages/libtpu/libtpu.so)\n");
    return 0;
  }
  tt_status status = run(argv[1], argc > 2 ? argv[2] : "tpu7x:2x2x1");
  if (status != NULL) {
    fprintf(stderr, "%s: %s\n", tt_code_name(tt_status_code(status)), tt_status_text(status));
    tt_status_free(status);
    return 1;
  }
  return 0;
}
