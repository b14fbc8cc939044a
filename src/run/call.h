// SPDX-License-Identifier: Apache-2.0
//
// The inside of calls: slots and keys (key.c), plans (plan.c), lowering into a trace (trace.c), launching (launch.c).
#ifndef TT_RUN_CALL_H
#define TT_RUN_CALL_H

#include "base/hash.h"
#include "base/mem.h"
#include "hlo/bounded.h"
#include "lazy/tensor.h"
#include "lazy/view.h"
#include "ops/lower.h"
#include "run/device.h"
#include "tt/call.h"

struct tt_overload {
  char* name;  // "add.Tensor"
  const tt_op* op;
  int num_args, num_outputs;
  int* out_alias;
  uint64_t mutates;
  char* xla_options;       // of its programs alone, or NULL
  bool bakes_all;          // every number is part of the key (captured PyTorch code sees plain numbers)
  _Atomic uint64_t baked;  // arguments whose value lowering bakes in: bit i
  _Atomic bool precise;    // programs carry the f32 precision: it is in the key
};

// A tensor of the call. All tensors of a call are numbered: arguments in order, list elements each one.
typedef struct tt_slot {
  const tt_tensor* t;
  int first;         // the first slot with the same storage (itself if it is); -1 for host numbers and absent tensors
  bool is_base;      // the tensor is the storage's value as it stands
  bool unwritten;    // the storage has no value yet
  bool is_lost;      // it had one coming that was lost: reading it fails
  const char* lost;  // why, once frozen
  tt_code lost_code;
  bool donate;            // the buffer may be given up: the call writes here and nobody else holds it
  tt_view_plan* view;     // if !is_base
  const tt_type* type;    // the base's type, once frozen
  const tt_type* padded;  // the type of its buffer if that is larger, once frozen; else NULL
} tt_slot;

enum { INLINE_SLOTS = 16, INLINE_VIEWS = 4, INLINE_WORDS = 256 };

typedef TT_VEC(int64_t) tt_sizes;

// A call with its slots and key.
typedef struct tt_bound {
  const tt_call* call;
  int first_slot[TT_MAX_ARGS];
  int count;
  tt_slot* slots;
  uint64_t* words;
  size_t num_words, word_capacity;
  uint64_t hash;
  int views;
  tt_sizes* sizes;      // while a pattern is made: where sizes go; else NULL
  bool ints_are_sizes;  // then: integer arguments count as sizes
  bool captured;        // some tensor holds a captured value, which is none outside its capture
  tt_arena arena;       // what does not fit inline
  tt_slot inline_slots[INLINE_SLOTS];
  tt_view_plan inline_views[INLINE_VIEWS];
  uint64_t inline_words[INLINE_WORDS];
} tt_bound;

// Marks of a tensor in the key.
enum {
  TT_KEY_HOST = 1,
  TT_KEY_WRAPPED = 2,
  TT_KEY_BASE = 4,
  TT_KEY_UNWRITTEN = 8,
  TT_KEY_DONATE = 16,
  TT_KEY_NEEDS_OFFSET = 32,
  TT_KEY_OWN_DIMS = 64,
  TT_KEY_LOST = 128,
  TT_KEY_CONJ = 128,
  TT_KEY_NEG = 256,
  TT_KEY_PADDED = 512
};

int tt_precision_get(void);
void tt_bound_init(tt_bound* bound, const tt_call* call);
void tt_bound_deinit(tt_bound* bound);
// Fills slots and key from what the storages hold now. May be repeated.
void tt_bound_key_locked(tt_bound* bound);
// Instead of the key: the call's pattern, the key without sizes (and integer arguments, if they may be sizes), and those, in order.
void tt_bound_pattern_locked(tt_bound* bound, bool ints_are_sizes, tt_sizes* out_sizes);
tt_status tt_bound_captured(const tt_bound* bound);  // the error to give then
// Copies the bases' types, so that they can be read without the lock.
void tt_bound_freeze_locked(tt_bound* bound);

// ---- plans ----------------------------------------------------------------------------------------------------------------
typedef enum tt_source_kind {
  TT_SOURCE_VALUE,   // the storage's buffer of slot `index`
  TT_SOURCE_OFFSET,  // the storage offset of slot `index`, i64
  TT_SOURCE_NUMBER,  // element `elem` of argument `index`
  TT_SOURCE_HOST,    // the host number of slot `index`
  TT_SOURCE_RANDOM,  // u64[3] = {seed, offset, 0}
  TT_SOURCE_CHECK,   // the index-check accumulator
  TT_SOURCE_SITE,    // this call's check site, i64
  TT_SOURCE_SIZE,    // the plan's run-time size `index`, i64
} tt_source_kind;

typedef struct tt_source {
  tt_source_kind kind;
  tt_dtype dtype;
  int index, elem;
} tt_source;

typedef struct tt_result {
  enum { TT_RESULT_OUTPUT, TT_RESULT_WRITE, TT_RESULT_CHECK } kind;
  int index;  // output or slot
} tt_result;

struct tt_plan {
  tt_obj obj;
  const tt_overload* overload;
  uint64_t serial;  // no two plans of the process have the same
  char* text;       // of the program; NULL: nothing to run
  tt_exec* exec;    // compiled at once, in fused mode when first run by itself
  int num_sources, num_results, num_outputs;
  tt_source* sources;
  tt_type* source_types;
  bool* donate;  // by source
  tt_result* results;
  tt_type* result_types;
  tt_type* value_types;  // by result: the value's own type where result_types may be larger; NULL: they are the same
  tt_type* out_padded;   // by output: the type of its buffer; NULL: out_types
  tt_meta* metas;        // by output; absent ones have an invalid dtype
  tt_type* out_types;    // by output: the storage's type; invalid dtype for outputs that are arguments
  uint64_t random_steps;
  int64_t new_bytes;    // of results that take no input's memory
  int64_t value_bytes;  // of all results
  bool checks;
  // A plan for one size by a program for many (run/family.c): `program` (held) owns text, sources, results and their types.
  tt_plan* program;
  int64_t sizes[TT_SYMBOLS];
  void* extra;  // the caller's (tt_call)
  void (*free_extra)(void* extra);
  uint64_t used;
  uint64_t* key;  // as the table has it
  size_t key_words;
};

tt_plan* tt_plan_create(const tt_overload* overload);
void tt_plan_each_locked(void (*fn)(void* plan, void* ctx), void* ctx);
tt_plan* tt_plan_find_locked(tt_bound* bound);                // borrowed
void tt_plan_install_locked(tt_bound* bound, tt_plan* plan);  // takes the reference
// The overload's name as a module may have it.
void tt_plan_program_name(const tt_plan* plan, char* out, size_t size);
// Compiles the plan's program if that was put off. Without the lock.
TT_NODISCARD tt_status tt_plan_compile(tt_plan* plan, int device);
// One input, from the call as it stands. *out_owned: the caller releases it.
TT_NODISCARD tt_status tt_plan_number(const tt_plan* plan, const tt_bound* bound, const tt_source* source,
                                      tt_scalar* out_number);
void tt_plan_make_outputs_locked(tt_plan* plan, int device, tt_outputs* out_outputs);
TT_NODISCARD tt_status tt_plan_launch_locked(tt_plan* plan, tt_bound* bound, const char* where, tt_outputs* out_outputs,
                                             tt_pending** out_wait);

// ---- traces ---------------------------------------------------------------------------------------------------------------
// A plan in the making: the builder, and what the program's parameters and results stand for.
typedef struct tt_trace tt_trace;
tt_trace* tt_trace_create(tt_bound* bound);  // borrows `bound`, frozen
void tt_trace_destroy(tt_trace* trace);
tt_builder* tt_trace_builder(tt_trace* trace);
uint64_t tt_trace_baked(const tt_trace* trace);  // arguments baked in so far
void tt_trace_bake(tt_trace* trace, int arg);
// The call's own tensors.
tt_val tt_trace_read(tt_trace* trace, int slot, const tt_tensor* t, tt_dtype dtype);
void tt_trace_write(tt_trace* trace, int slot, const tt_tensor* t, tt_val value);
tt_val tt_trace_number(tt_trace* trace, int arg, int elem, const tt_scalar* value, tt_dtype dtype);
tt_val tt_trace_random_bits(tt_trace* trace, const tt_type* type);
void tt_trace_report_index(tt_trace* trace, tt_val bad, tt_val index, int64_t size);
// Lowers `call` by its entry; hooks decide where tensors come from. outs: num_metas values, TT_POISON for absent ones.
void tt_trace_lower(tt_builder* b, const tt_lower_hooks* hooks, void* ctx, const tt_call* call, int num_metas,
                    const tt_meta* metas, tt_val* outs);
// Lowers the trace's own call; results that stand for arguments are written to them, and TT_POISON in `outs` afterwards.
void tt_trace_lower_call(tt_trace* trace, tt_bound* bound, int num_metas, const tt_meta* metas, tt_val* outs);
// Compiles the trace to a plan: outs are the outputs' logical values (TT_POISON: absent or an argument). `pad` (may be NULL): by
// output, the dimensions whose buffer goes up to a bound.
TT_NODISCARD tt_status tt_trace_finish(tt_trace* trace, int num_outs, const tt_meta* metas, const tt_val* outs,
                                       const uint32_t* pad, tt_plan** out_plan);
// Its first half: a plan without program, and what the program's results are to be (malloc'ed). Returns their number.
int tt_trace_collect(tt_trace* trace, int num_outs, const tt_meta* metas, const tt_val* outs, const uint32_t* pad,
                     tt_plan** out_plan, tt_val** out_values);
// Text and types of the program.
TT_NODISCARD tt_status tt_plan_print(tt_plan* plan, tt_builder* b, tt_val* values);

// Compiles text for a device, with the options this runtime uses and `xla_options` (may be NULL).
TT_NODISCARD tt_status tt_compile(tt_device* device, const char* name, const char* text, const char* xla_options,
                                  tt_exec** out_exec);

#endif  // TT_RUN_CALL_H
