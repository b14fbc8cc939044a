// SPDX-License-Identifier: Apache-2.0
//
// Programs: compiled, serialised, launched. An executable and a loaded executable are one object with two kinds of references.
#include <stdlib.h>
#include <string.h>

#include "plugin.h"

// PJRT_Executable* and PJRT_LoadedExecutable* both point to this.
typedef struct executable {
  _Atomic int refs;
  PJRT_Client* client;  // NULL: compiled ahead of time
  fake_program* program;
  PJRT_Buffer_Type* output_types;
  int64_t* output_dims;
  size_t* output_ranks;
  PJRT_NamedValue cost;
} executable;

static executable* of(const void* handle) {
  executable* e = NULL;
  memcpy(&e, &handle, sizeof e);
  return e;
}

static void release(executable* e) {
  if (atomic_fetch_sub(&e->refs, 1) == 1) {
    fake_program_destroy(e->program);
    free(e->output_types);
    free(e->output_dims);
    free(e->output_ranks);
    free(e);
    fake_live_add(-1);
  }
}

// ---- making ---------------------------------------------------------------------------------------------------------------

static PJRT_Error* make(PJRT_Client* client, const char* text, size_t size, executable** out) {
  char reason[256] = "";
  fake_program* program = fake_program_parse(text, size, reason, sizeof reason);
  if (program == NULL) {
    return fake_error(PJRT_Error_Code_INVALID_ARGUMENT, "cannot compile: %s", reason);
  }
  executable* e = fake_alloc(1, sizeof *e);
  fake_live_add(1);
  e->refs = 1;
  e->client = client;
  e->program = program;
  size_t n = (size_t)program->num_outputs;
  e->output_types = fake_alloc(n, sizeof *e->output_types);
  e->output_dims = fake_alloc(n * TT_MAX_RANK, sizeof *e->output_dims);
  e->output_ranks = fake_alloc(n, sizeof *e->output_ranks);
  int64_t* next = e->output_dims;
  for (size_t i = 0; i < n; ++i) {
    const tt_type* type = &program->outputs[i];
    e->output_types[i] = fake_buffer_type(type->dtype);
    e->output_ranks[i] = (size_t)type->rank;
    memcpy(next, type->dims, (size_t)type->rank * sizeof *next);
    next += type->rank;
  }
  *out = e;
  return NULL;
}

PJRT_Error* fake_PJRT_Client_Compile(PJRT_Client_Compile_Args* args) {
  FAKE_ENTER(PJRT_Client_Compile);
  fake_compile_gate();
  executable* e = NULL;
  PJRT_Error* error = make(args->client, args->program->code, args->program->code_size, &e);
  args->executable = (PJRT_LoadedExecutable*)(void*)e;
  return error;
}

PJRT_Error* fake_PJRT_Compile(PJRT_Compile_Args* args) {
  FAKE_ENTER(PJRT_Compile);
  executable* e = NULL;
  PJRT_Error* error = make(NULL, args->program->code, args->program->code_size, &e);
  args->executable = (PJRT_Executable*)(void*)e;
  return error;
}

PJRT_Error* fake_PJRT_LoadedExecutable_GetExecutable(PJRT_LoadedExecutable_GetExecutable_Args* args) {
  FAKE_ENTER(PJRT_LoadedExecutable_GetExecutable);
  executable* e = of(args->loaded_executable);
  atomic_fetch_add(&e->refs, 1);
  args->executable = (PJRT_Executable*)(void*)e;
  return NULL;
}

PJRT_Error* fake_PJRT_Executable_Destroy(PJRT_Executable_Destroy_Args* args) {
  FAKE_ENTER(PJRT_Executable_Destroy);
  release(of(args->executable));
  return NULL;
}

PJRT_Error* fake_PJRT_LoadedExecutable_Destroy(PJRT_LoadedExecutable_Destroy_Args* args) {
  FAKE_ENTER(PJRT_LoadedExecutable_Destroy);
  release(of(args->executable));
  return NULL;
}

// ---- bytes: a mark, and the text ------------------------------------------------------------------------------------------

static const char mark[8] = "FAKEPROG";

struct PJRT_SerializedExecutable {
  char* bytes;
};

static void destroy_serialized(PJRT_SerializedExecutable* serialized) {
  free(serialized->bytes);
  free(serialized);
}

PJRT_Error* fake_PJRT_Executable_Serialize(PJRT_Executable_Serialize_Args* args) {
  FAKE_ENTER(PJRT_Executable_Serialize);
  const char* text = of(args->executable)->program->text;
  PJRT_SerializedExecutable* serialized = fake_alloc(1, sizeof *serialized);
  args->serialized_bytes_size = sizeof mark + strlen(text);
  serialized->bytes = fake_alloc(args->serialized_bytes_size, 1);
  memcpy(serialized->bytes, mark, sizeof mark);
  memcpy(serialized->bytes + sizeof mark, text, strlen(text));
  args->serialized_bytes = serialized->bytes;
  args->serialized_executable = serialized;
  args->serialized_executable_deleter = destroy_serialized;
  return NULL;
}

PJRT_Error* fake_PJRT_Executable_DeserializeAndLoad(PJRT_Executable_DeserializeAndLoad_Args* args) {
  FAKE_ENTER(PJRT_Executable_DeserializeAndLoad);
  if (args->serialized_executable_size < sizeof mark || memcmp(args->serialized_executable, mark, sizeof mark) != 0) {
    return fake_error(PJRT_Error_Code_INVALID_ARGUMENT, "not a serialized executable");
  }
  executable* e = NULL;
  PJRT_Error* error =
      make(args->client, args->serialized_executable + sizeof mark, args->serialized_executable_size - sizeof mark, &e);
  args->loaded_executable = (PJRT_LoadedExecutable*)(void*)e;
  return error;
}

// ---- figures --------------------------------------------------------------------------------------------------------------

PJRT_Error* fake_PJRT_Executable_NumOutputs(PJRT_Executable_NumOutputs_Args* args) {
  FAKE_ENTER(PJRT_Executable_NumOutputs);
  args->num_outputs = (size_t)of(args->executable)->program->num_outputs;
  return NULL;
}

PJRT_Error* fake_PJRT_Executable_OutputElementTypes(PJRT_Executable_OutputElementTypes_Args* args) {
  FAKE_ENTER(PJRT_Executable_OutputElementTypes);
  args->output_types = of(args->executable)->output_types;
  args->num_output_types = (size_t)of(args->executable)->program->num_outputs;
  return NULL;
}

PJRT_Error* fake_PJRT_Executable_OutputDimensions(PJRT_Executable_OutputDimensions_Args* args) {
  FAKE_ENTER(PJRT_Executable_OutputDimensions);
  args->num_outputs = (size_t)of(args->executable)->program->num_outputs;
  args->dims = of(args->executable)->output_dims;
  args->dim_sizes = of(args->executable)->output_ranks;
  return NULL;
}

PJRT_Error* fake_PJRT_Executable_GetCompiledMemoryStats(PJRT_Executable_GetCompiledMemoryStats_Args* args) {
  FAKE_ENTER(PJRT_Executable_GetCompiledMemoryStats);
  const fake_program* program = of(args->executable)->program;
  for (int i = 0; i < program->main->num_args; ++i) {
    int64_t size = (int64_t)fake_array_bytes(&program->params[i]);
    args->argument_size_in_bytes += size;
    args->alias_size_in_bytes += program->alias[i] >= 0 ? size : 0;
  }
  for (int i = 0; i < program->num_outputs; ++i) {
    args->output_size_in_bytes += (int64_t)fake_array_bytes(&program->outputs[i]);
  }
  args->peak_memory_in_bytes = args->argument_size_in_bytes + args->output_size_in_bytes - args->alias_size_in_bytes;
  return NULL;
}

PJRT_Error* fake_PJRT_Executable_GetCostAnalysis(PJRT_Executable_GetCostAnalysis_Args* args) {
  FAKE_ENTER(PJRT_Executable_GetCostAnalysis);
  executable* e = of(args->executable);
  e->cost = (PJRT_NamedValue){.struct_size = PJRT_NamedValue_STRUCT_SIZE,
                              .name = "operations",
                              .name_size = strlen("operations"),
                              .type = PJRT_NamedValue_kInt64,
                              .int64_value = e->program->main->num_ops,
                              .value_size = 1};
  args->num_properties = 1;
  args->properties = &e->cost;
  return NULL;
}

// ---- launching ------------------------------------------------------------------------------------------------------------

// Inputs to give up: those with an alias that are not named as to be kept.
static bool given_up(const fake_program* program, const PJRT_ExecuteOptions* options, int input) {
  for (size_t k = 0; k < options->num_non_donatable_input_indices; ++k) {
    if (options->non_donatable_input_indices[k] == input) {
      return false;
    }
  }
  return program->alias[input] >= 0;
}

static PJRT_Error* check_inputs(const fake_program* program, const PJRT_ExecuteOptions* options, PJRT_Buffer* const* in,
                                size_t n, fake_outcome* out_outcome) {
  if (n != (size_t)program->main->num_args) {
    return fake_error(PJRT_Error_Code_INVALID_ARGUMENT, "expected %d arguments, got %zu", program->main->num_args, n);
  }
  for (size_t i = 0; i < n; ++i) {
    const tt_type* want = &program->params[i];
    const tt_type* got = &in[i]->type;
    if (in[i]->deleted) {
      return fake_error(PJRT_Error_Code_INVALID_ARGUMENT, "argument %zu has been deleted or donated", i);
    }
    if (got->dtype != want->dtype || got->rank != want->rank ||
        memcmp(got->dims, want->dims, (size_t)want->rank * sizeof *want->dims) != 0) {
      return fake_error(PJRT_Error_Code_INVALID_ARGUMENT, "argument %zu has another type than parameter %zu", i, i);
    }
    for (size_t k = 0; k < n; ++k) {
      if (k != i && in[k] == in[i] && given_up(program, options, (int)i)) {
        return fake_error(PJRT_Error_Code_INVALID_ARGUMENT, "argument %zu is donated and used as argument %zu", i, k);
      }
    }
    if (in[i]->outcome.text != NULL && out_outcome->text == NULL) {
      *out_outcome = fake_outcome_copy(in[i]->outcome);
    }
  }
  return NULL;
}

static PJRT_Error* reserve_outputs(PJRT_Device* device, const fake_program* program,
                                   const PJRT_ExecuteOptions* options) {
  size_t size = 0;
  for (int k = 0; k < program->num_outputs; ++k) {
    size += fake_array_bytes(&program->outputs[k]);
  }
  // Memory of inputs given up serves outputs.
  size_t reused = 0;
  for (int i = 0; i < program->main->num_args; ++i) {
    reused += given_up(program, options, i) ? fake_array_bytes(&program->params[i]) : 0;
  }
  PJRT_Error* error = fake_reserve(device, size - reused);
  if (error == NULL) {
    atomic_fetch_add(&device->in_use, (int64_t)reused);
    fake_bytes_add((int64_t)reused);
  }
  return error;
}

PJRT_Error* fake_PJRT_LoadedExecutable_Execute(PJRT_LoadedExecutable_Execute_Args* args) {
  FAKE_ENTER(PJRT_LoadedExecutable_Execute);
  const executable* e = of(args->executable);
  const fake_program* program = e->program;
  PJRT_Buffer* const* in = args->argument_lists[0];
  PJRT_Buffer** out = args->output_lists[0];
  PJRT_Device* device = args->execute_device != NULL ? args->execute_device : &e->client->devices[0];
  fake_outcome outcome = {0, NULL};
  PJRT_Error* error = check_inputs(program, args->options, in, args->num_args, &outcome);
  if (error == NULL) {
    error = reserve_outputs(device, program, args->options);
  }
  if (error != NULL) {
    free(outcome.text);
    return error;
  }
  if (outcome.text == NULL) {
    (void)fake_fail_later_now(&outcome);
  }
  fake_array** arrays = fake_alloc((size_t)program->num_outputs, sizeof *arrays);
  if (outcome.text == NULL) {
    fake_array** inputs = fake_alloc(args->num_args, sizeof *inputs);
    for (size_t i = 0; i < args->num_args; ++i) {
      inputs[i] = in[i]->array;
    }
    fake_program_run(program, inputs, arrays);
    free(inputs);
  }
  for (size_t i = 0; i < args->num_args; ++i) {
    if (given_up(program, args->options, (int)i)) {
      fake_buffer_delete(in[i]);
    }
  }
  for (int k = 0; k < program->num_outputs; ++k) {
    out[k] = fake_buffer_new(device, &program->outputs[k], arrays[k], outcome, true);
  }
  free(arrays);
  free(outcome.text);
  return NULL;
}

// ---- machines that are not there ------------------------------------------------------------------------------------------

struct PJRT_TopologyDescription {
  PJRT_DeviceDescription devices[4];
  PJRT_DeviceDescription* list[4];
};

PJRT_Error* fake_PJRT_TopologyDescription_Create(PJRT_TopologyDescription_Create_Args* args) {
  FAKE_ENTER(PJRT_TopologyDescription_Create);
  static const char known[] = "fake:2x2";
  if (args->topology_name_size != strlen(known) || strncmp(args->topology_name, known, strlen(known)) != 0) {
    return fake_error(PJRT_Error_Code_INVALID_ARGUMENT, "unknown topology");
  }
  args->topology = fake_alloc(1, sizeof *args->topology);
  fake_live_add(1);
  for (int i = 0; i < 4; ++i) {
    args->topology->devices[i].id = i;
    args->topology->list[i] = &args->topology->devices[i];
  }
  return NULL;
}

PJRT_Error* fake_PJRT_TopologyDescription_Destroy(PJRT_TopologyDescription_Destroy_Args* args) {
  FAKE_ENTER(PJRT_TopologyDescription_Destroy);
  free(args->topology);
  fake_live_add(-1);
  return NULL;
}

PJRT_Error* fake_PJRT_TopologyDescription_GetDeviceDescriptions(
    PJRT_TopologyDescription_GetDeviceDescriptions_Args* args) {
  FAKE_ENTER(PJRT_TopologyDescription_GetDeviceDescriptions);
  args->descriptions = args->topology->list;
  args->num_descriptions = 4;
  return NULL;
}
