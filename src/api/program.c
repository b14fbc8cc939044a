// SPDX-License-Identifier: Apache-2.0
//
// Programs for C callers: checks arguments, calls down.
#include "tt/program.h"

#include <string.h>

#include "base/mem.h"
#include "base/obj.h"
#include "run/device.h"

struct tt_program {
  tt_obj obj;
  tt_device* device;
  tt_exec* exec;
};

static void destroy(void* obj) {
  tt_program* program = obj;
  tt_exec_release(program->exec);
  free(program);
}
TT_OBJ_KIND(program_kind, "C program", destroy);

void tt_program_retain(tt_program* program) {
  tt_obj_retain(program);
}
void tt_program_release(tt_program* program) {
  tt_obj_release(program);
}
int tt_program_output_count(const tt_program* program) {
  return tt_exec_output_count(program->exec);
}

tt_status tt_program_compile(int device, const char* stablehlo, tt_program** out_program) {
  if (stablehlo == NULL) {
    TT_FAIL(TT_INVALID_ARGUMENT, "expected StableHLO text, got NULL");
  }
  tt_device* chosen;
  TT_TRY(tt_device_get(device, &chosen));
  tt_exec* exec;
  TT_TRY(tt_exec_compile(tt_device_client(chosen), stablehlo, strlen(stablehlo), NULL, &exec));
  tt_program* program = tt_obj_create(&program_kind, sizeof *program);
  program->device = chosen;
  program->exec = exec;
  *out_program = program;
  return NULL;
}

static tt_status check_array(const tt_array* array, const char* what, int index) {
  if (array->type.dtype <= TT_DTYPE_INVALID || array->type.dtype >= TT_DTYPE_COUNT) {
    TT_FAIL(TT_INVALID_ARGUMENT, "expected %s %d of a known element type, got %d", what, index, (int)array->type.dtype);
  }
  if (array->bytes == NULL && tt_type_bytes(&array->type) > 0) {
    TT_FAIL(TT_INVALID_ARGUMENT, "expected bytes for %s %d, got NULL", what, index);
  }
  return NULL;
}

static tt_status check_output_type(tt_buffer* buffer, const tt_type* expected, int index) {
  char got[128];
  char want[128];
  if (!tt_type_equal(tt_buffer_type(buffer), expected)) {
    TT_FAIL(TT_INVALID_ARGUMENT, "expected output %d to be %s, got %s", index,
            tt_type_describe(expected, want, sizeof want), tt_type_describe(tt_buffer_type(buffer), got, sizeof got));
  }
  return NULL;
}

static tt_status fetch(int count, tt_buffer* const* buffers, const tt_array* outputs) {
  for (int i = 0; i < count; ++i) {
    TT_TRY(check_output_type(buffers[i], &outputs[i].type, i));
    TT_TRY_CTX(tt_buffer_await(buffers[i]), "running the program");
  }
  for (int i = 0; i < count; ++i) {
    TT_TRY(tt_buffer_to_host(buffers[i], outputs[i].bytes, (size_t)tt_type_bytes(&outputs[i].type)));
  }
  return NULL;
}

static void release_all(tt_buffer** buffers, int count) {
  for (int i = 0; i < count; ++i) {
    tt_buffer_release(buffers[i]);
  }
  free(buffers);
}

static tt_status launch(tt_program* program, int num_inputs, const tt_array* inputs, tt_buffer** in, tt_buffer** out) {
  tt_client* client = tt_device_client(program->device);
  tt_pjrt_device* device = tt_device_pjrt(program->device);
  for (int i = 0; i < num_inputs; ++i) {
    TT_TRY_CTX(tt_buffer_from_host(client, device, &inputs[i].type, inputs[i].bytes, NULL, NULL, &in[i]), "input %d",
               i);
  }
  return tt_exec_run(program->exec, device, num_inputs, in, NULL, out);
}

tt_status tt_program_run(tt_program* program, int num_inputs, const tt_array* inputs, int num_outputs,
                         const tt_array* outputs) {
  int count = tt_exec_output_count(program->exec);
  if (num_inputs < 0 || num_outputs != count) {
    TT_FAIL(TT_INVALID_ARGUMENT, "expected %d outputs and inputs of no negative number, got %d and %d", count,
            num_outputs, num_inputs);
  }
  for (int i = 0; i < num_inputs; ++i) {
    TT_TRY(check_array(&inputs[i], "input", i));
  }
  for (int i = 0; i < num_outputs; ++i) {
    TT_TRY(check_array(&outputs[i], "output", i));
  }
  tt_buffer** in = tt_calloc((size_t)num_inputs + 1, sizeof *in);
  tt_buffer** out = tt_calloc((size_t)count + 1, sizeof *out);
  tt_status status = launch(program, num_inputs, inputs, in, out);
  if (status == NULL) {
    status = fetch(count, out, outputs);
  }
  release_all(in, num_inputs);
  release_all(out, count);
  return status;
}

static tt_status report(tt_topology* topology, tt_exec* exec, tt_program_report* out_report, tt_cost_fn cost,
                        void* ctx) {
  tt_memory_stats memory;
  TT_TRY(tt_exec_memory_stats(exec, &memory));
  *out_report = (tt_program_report){.device_count = tt_topology_device_count(topology),
                                    .code_bytes = memory.code,
                                    .argument_bytes = memory.arguments,
                                    .output_bytes = memory.outputs,
                                    .aliased_bytes = memory.aliased,
                                    .temporary_bytes = memory.temporaries,
                                    .peak_bytes = memory.peak};
  return cost == NULL ? NULL : tt_exec_cost(exec, cost, ctx);
}

tt_status tt_program_analyze(const char* plugin, const char* topology, const char* stablehlo,
                             tt_program_report* out_report, tt_cost_fn cost, void* ctx) {
  if (topology == NULL || stablehlo == NULL) {
    TT_FAIL(TT_INVALID_ARGUMENT, "expected a topology and StableHLO text, got NULL");
  }
  if (plugin == NULL) {
    TT_TRY(tt_runtime_plugin_path(&plugin));
  }
  tt_plugin* loaded = NULL;
  tt_topology* machine = NULL;
  tt_exec* exec = NULL;
  tt_status status = tt_plugin_load(plugin, &loaded);
  if (status == NULL) {
    status = tt_topology_create(loaded, topology, &machine);
  }
  if (status == NULL) {
    status = tt_status_annotate(tt_topology_compile(machine, stablehlo, strlen(stablehlo), NULL, &exec),
                                "compiling for %s", topology);
  }
  if (status == NULL) {
    status = report(machine, exec, out_report, cost, ctx);
  }
  tt_exec_release(exec);
  tt_topology_release(machine);
  tt_plugin_release(loaded);
  return status;
}
