// SPDX-License-Identifier: Apache-2.0
//
// Programs: compile, load, launch, serialise, analyse. What a launch needs to know of its outputs is read once, here.
#include <string.h>

#include "base/log.h"
#include "pjrt/internal.h"

static void destroy(void* obj) {
  tt_exec* exec = obj;
  if (exec->client == NULL || tt_client_usable(exec->client)) {
    if (exec->executable != NULL) {
      PJRT_Executable_Destroy_Args args = {.executable = exec->executable};
      tt_pjrt_ignore(TT_PJRT_CALL(exec->api, PJRT_Executable_Destroy, &args));
    }
    if (exec->loaded != NULL) {
      PJRT_LoadedExecutable_Destroy_Args args = {.executable = exec->loaded};
      tt_pjrt_ignore(TT_PJRT_CALL(exec->api, PJRT_LoadedExecutable_Destroy, &args));
    }
  }
  free(exec->output_types);
  free(exec->output_bytes);
  tt_client_release(exec->client);
  tt_topology_release(exec->topology);
  free(exec);
}
TT_OBJ_KIND(exec_kind, "exec", destroy);

void tt_exec_retain(tt_exec* exec) {
  tt_obj_retain(exec);
}
void tt_exec_release(tt_exec* exec) {
  tt_obj_release(exec);
}
int tt_exec_output_count(const tt_exec* exec) {
  return exec->output_count;
}

// ---- making -------------------------------------------------------------------------------------------------------

static tt_status read_outputs(tt_exec* exec) {
  PJRT_Executable_NumOutputs_Args count = {.executable = exec->executable};
  TT_TRY(TT_PJRT_CALL(exec->api, PJRT_Executable_NumOutputs, &count));
  exec->output_count = (int)count.num_outputs;
  exec->output_types = tt_calloc(count.num_outputs, sizeof *exec->output_types);
  exec->output_bytes = tt_calloc(count.num_outputs, sizeof *exec->output_bytes);
  if (count.num_outputs == 0) {
    return NULL;
  }
  PJRT_Executable_OutputElementTypes_Args types = {.executable = exec->executable};
  TT_TRY(TT_PJRT_CALL(exec->api, PJRT_Executable_OutputElementTypes, &types));
  PJRT_Executable_OutputDimensions_Args dims = {.executable = exec->executable};
  TT_TRY(TT_PJRT_CALL(exec->api, PJRT_Executable_OutputDimensions, &dims));
  if (types.num_output_types != count.num_outputs || dims.num_outputs != count.num_outputs) {
    TT_FAIL(TT_INTERNAL, "expected types and sizes of %zu outputs, got %zu and %zu", count.num_outputs,
            types.num_output_types, dims.num_outputs);
  }
  const int64_t* next = dims.dims;
  for (size_t i = 0; i < count.num_outputs; ++i) {
    tt_dtype dtype = tt_pjrt_dtype_of(types.output_types[i]);
    if (dtype == TT_DTYPE_INVALID || dims.dim_sizes[i] > TT_MAX_RANK) {
      TT_FAIL(TT_UNIMPLEMENTED,
              "expected output %zu of a known element type and at most %d dimensions, got type %d, %zu", i, TT_MAX_RANK,
              (int)types.output_types[i], dims.dim_sizes[i]);
    }
    exec->output_types[i] = tt_type_make(dtype, (int)dims.dim_sizes[i], next);
    exec->output_bytes[i] = tt_type_bytes(&exec->output_types[i]);
    exec->total_output_bytes += exec->output_bytes[i];
    next += dims.dim_sizes[i];
  }
  return NULL;
}

// Owns `loaded` and `executable` from the start, so that a failure frees them.
static tt_status make(const PJRT_Api* api, tt_client* client, tt_topology* topology, PJRT_LoadedExecutable* loaded,
                      PJRT_Executable* executable, const tt_compile_options* options, tt_exec** out_exec) {
  tt_exec* exec = tt_obj_create(&exec_kind, sizeof *exec);
  exec->api = api;
  exec->loaded = loaded;
  exec->executable = executable;
  if (topology != NULL) {
    tt_obj_retain(topology);
    exec->topology = topology;
  }
  exec->may_donate = true;
  if (client != NULL) {
    tt_client_retain(client);
    exec->client = client;
    exec->spans_devices = options != NULL && (options->num_replicas > 1 || options->num_partitions > 1);
    exec->portable = client->device_count > 1 && !exec->spans_devices;
    exec->device = exec->spans_devices ? NULL : &client->devices[0];
    PJRT_LoadedExecutable_GetExecutable_Args args = {.loaded_executable = loaded};
    tt_status status = TT_PJRT_CALL(api, PJRT_LoadedExecutable_GetExecutable, &args);
    if (status != NULL) {
      tt_exec_release(exec);
      return status;
    }
    exec->executable = args.executable;
  }
  tt_status status = read_outputs(exec);
  if (status != NULL) {
    tt_exec_release(exec);
    return status;
  }
  // A launch that cannot donate need not name the inputs to keep.
  tt_memory_stats stats;
  status = tt_exec_memory_stats(exec, &stats);
  exec->may_donate = status != NULL || stats.aliased > 0;
  tt_pjrt_ignore(status);
  *out_exec = exec;
  return NULL;
}

static bool wants_portable(const tt_client* client, const tt_compile_options* options) {
  return client->device_count > 1 && (options == NULL || (options->num_replicas <= 1 && options->num_partitions <= 1));
}

static PJRT_Program program_of(const char* stablehlo, size_t size) {
  static const char format[] = "mlir";
  // PJRT_Program is also used for output, hence its pointer to plain char.
  char* code = NULL;
  memcpy(&code, &stablehlo, sizeof code);
  return (PJRT_Program){.struct_size = PJRT_Program_STRUCT_SIZE,
                        .code = code,
                        .code_size = size,
                        .format = format,
                        .format_size = sizeof format - 1};
}

tt_status tt_exec_compile(tt_client* client, const char* stablehlo, size_t size, const tt_compile_options* options,
                          tt_exec** out_exec) {
  TT_PJRT_USABLE(client);
  tt_strbuf bytes = {0};
  TT_TRY(tt_pjrt_compile_options(options, wants_portable(client, options), &bytes));
  PJRT_Program program = program_of(stablehlo, size);
  PJRT_Client_Compile_Args args = {.client = client->client,
                                   .program = &program,
                                   .compile_options = bytes.text,
                                   .compile_options_size = bytes.length};
  int64_t start = tt_now_ns();
  tt_status status = TT_PJRT_CALL(client->api, PJRT_Client_Compile, &args);
  tt_strbuf_free(&bytes);
  TT_TRY(status);
  TT_LOG("pjrt", "compiled %zu bytes of StableHLO in %.1f ms", size, (double)(tt_now_ns() - start) * 1e-6);
  return make(client->api, client, NULL, args.executable, NULL, options, out_exec);
}

tt_status tt_exec_load(tt_client* client, const void* serialized, size_t size, const tt_compile_options* options,
                       tt_exec** out_exec) {
  TT_PJRT_USABLE(client);
  tt_strbuf bytes = {0};
  TT_TRY(tt_pjrt_compile_options(options, wants_portable(client, options), &bytes));
  PJRT_Executable_DeserializeAndLoad_Args args = {.client = client->client,
                                                  .serialized_executable = serialized,
                                                  .serialized_executable_size = size,
                                                  .overridden_serialized_compile_options = bytes.text,
                                                  .overridden_serialized_compile_options_size = bytes.length};
  tt_status status = TT_PJRT_CALL(client->api, PJRT_Executable_DeserializeAndLoad, &args);
  tt_strbuf_free(&bytes);
  TT_TRY(status);
  return make(client->api, client, NULL, args.loaded_executable, NULL, options, out_exec);
}

tt_status tt_topology_compile(tt_topology* topology, const char* stablehlo, size_t size,
                              const tt_compile_options* options, tt_exec** out_exec) {
  const PJRT_Api* api = topology->plugin->api;
  tt_strbuf bytes = {0};
  TT_TRY(tt_pjrt_compile_options(options, false, &bytes));
  PJRT_Program program = program_of(stablehlo, size);
  PJRT_Compile_Args args = {.topology = topology->topology,
                            .program = &program,
                            .compile_options = bytes.text,
                            .compile_options_size = bytes.length};
  tt_status status = TT_PJRT_CALL(api, PJRT_Compile, &args);
  tt_strbuf_free(&bytes);
  TT_TRY(status);
  return make(api, NULL, topology, NULL, args.executable, options, out_exec);
}

// ---- launching ----------------------------------------------------------------------------------------------------

enum { STACK_BUFFERS = 64 };

static tt_status check_launch(const tt_exec* exec, const tt_pjrt_device* device) {
  if (exec->client == NULL) {
    TT_FAIL(TT_FAILED_PRECONDITION, "expected a program of this machine's device, got one compiled ahead of time");
  }
  TT_PJRT_USABLE(exec->client);
  if (device != NULL && device->client != exec->client) {
    TT_FAIL(TT_INVALID_ARGUMENT, "expected a device of the program's own client, got one of another");
  }
  if (device == NULL && exec->spans_devices) {
    TT_FAIL(TT_INVALID_ARGUMENT, "expected a device for a program with replicas or partitions, got none");
  }
  return NULL;
}

// The inputs that must stay: all of them if `donate` is NULL. Returns how many.
static size_t list_kept(int num_inputs, const bool* donate, int64_t* kept) {
  size_t count = 0;
  for (int i = 0; i < num_inputs; ++i) {
    if (donate == NULL || !donate[i]) {
      kept[count++] = i;
    }
  }
  return count;
}

static tt_status launch(tt_exec* exec, tt_pjrt_device* target, int num_inputs, PJRT_Buffer** raw_inputs,
                        const bool* donate, PJRT_Buffer** raw_outputs) {
  int64_t kept_few[STACK_BUFFERS];
  int64_t* kept = kept_few;
  PJRT_ExecuteOptions options = {.struct_size = PJRT_ExecuteOptions_STRUCT_SIZE};
  if (exec->may_donate) {
    if (num_inputs > STACK_BUFFERS) {
      kept = tt_malloc((size_t)num_inputs * sizeof *kept);
    }
    options.num_non_donatable_input_indices = list_kept(num_inputs, donate, kept);
    options.non_donatable_input_indices = kept;
  }
  if (exec->spans_devices) {
    // The devices of one launch meet under this number. All of them launch the same programs in the same order, so each
    // counts for itself; without a number the collectives of two launches under way could meet each other.
    options.launch_id = atomic_fetch_add(&target->spanning_launches, 1) + 1;
  }
  PJRT_Buffer* const* argument_list = raw_inputs;
  PJRT_LoadedExecutable_Execute_Args args = {.executable = exec->loaded,
                                             .options = &options,
                                             .argument_lists = &argument_list,
                                             .num_devices = 1,
                                             .num_args = (size_t)num_inputs,
                                             .output_lists = &raw_outputs,
                                             .execute_device = target ? target->device : NULL};
  tt_status status = TT_PJRT_CALL(exec->api, PJRT_LoadedExecutable_Execute, &args);
  if (status != NULL && exec->spans_devices) {
    atomic_fetch_sub(&target->spanning_launches, 1);
  }
  if (kept != kept_few) {
    free(kept);
  }
  return status;
}

tt_status tt_exec_run(tt_exec* exec, tt_pjrt_device* device, int num_inputs, tt_buffer* const* inputs,
                      const bool* donate, tt_buffer** out_outputs) {
  TT_TRY(check_launch(exec, device));
  tt_pjrt_device* on = device ? device : exec->device;
  PJRT_Buffer* few[STACK_BUFFERS];
  size_t needed = (size_t)num_inputs + (size_t)exec->output_count;
  PJRT_Buffer** raw = needed > STACK_BUFFERS ? tt_malloc(needed * sizeof *raw) : few;
  PJRT_Buffer** raw_outputs = raw + num_inputs;
  for (int i = 0; i < num_inputs; ++i) {
    raw[i] = inputs[i]->buffer;
  }
  // Naming the device costs nothing but is refused for programs that are tied to one.
  tt_status status =
      launch(exec, exec->portable || exec->spans_devices ? on : NULL, num_inputs, raw, donate, raw_outputs);
  if (status == NULL) {
    for (int i = 0; donate != NULL && i < num_inputs; ++i) {
      if (donate[i]) {
        tt_buffer_note_donated(inputs[i]);
      }
    }
    tt_buffer_count_made(on, exec->output_count, exec->total_output_bytes);
    for (int i = 0; i < exec->output_count; ++i) {
      out_outputs[i] = tt_buffer_adopt(exec->client, on, raw_outputs[i], &exec->output_types[i], exec->output_bytes[i]);
    }
  }
  if (raw != few) {
    free(raw);
  }
  return status;
}

// ---- bytes and figures --------------------------------------------------------------------------------------------

tt_status tt_exec_serialize(tt_exec* exec, void** out_bytes, size_t* out_size) {
  PJRT_Executable_Serialize_Args args = {.executable = exec->executable};
  TT_TRY(TT_PJRT_CALL(exec->api, PJRT_Executable_Serialize, &args));
  *out_bytes = tt_memdup(args.serialized_bytes, args.serialized_bytes_size);
  *out_size = args.serialized_bytes_size;
  args.serialized_executable_deleter(args.serialized_executable);
  return NULL;
}

tt_status tt_exec_memory_stats(tt_exec* exec, tt_memory_stats* out_stats) {
  PJRT_Executable_GetCompiledMemoryStats_Args args = {.executable = exec->executable};
  TT_TRY(TT_PJRT_CALL(exec->api, PJRT_Executable_GetCompiledMemoryStats, &args));
  *out_stats = (tt_memory_stats){.code = args.generated_code_size_in_bytes,
                                 .arguments = args.argument_size_in_bytes,
                                 .outputs = args.output_size_in_bytes,
                                 .aliased = args.alias_size_in_bytes,
                                 .temporaries = args.temp_size_in_bytes,
                                 .peak = args.peak_memory_in_bytes};
  return NULL;
}

tt_status tt_exec_cost(tt_exec* exec, void (*fn)(const char* name, double value, void* ctx), void* ctx) {
  PJRT_Executable_GetCostAnalysis_Args args = {.executable = exec->executable};
  TT_TRY(TT_PJRT_CALL(exec->api, PJRT_Executable_GetCostAnalysis, &args));
  for (size_t i = 0; i < args.num_properties; ++i) {
    const PJRT_NamedValue* property = &args.properties[i];
    bool real = property->type == PJRT_NamedValue_kFloat;
    if (!real && property->type != PJRT_NamedValue_kInt64) {
      continue;
    }
    tt_strbuf name = {0};  // the plugin's names need not end in NUL
    tt_strbuf_addn(&name, property->name, property->name_size);
    fn(name.text, real ? (double)property->float_value : (double)property->int64_value, ctx);
    tt_strbuf_free(&name);
  }
  return NULL;
}
