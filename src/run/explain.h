// SPDX-License-Identifier: Apache-2.0
//
// What the runtime says about itself (include/tt/explain.h), from the inside.
#ifndef TT_RUN_EXPLAIN_H
#define TT_RUN_EXPLAIN_H

#include "run/call.h"
#include "tt/explain.h"

// With the lock held, after the plan was installed: what is new about it. malloc'ed.
char* tt_explain_plan_locked(const tt_plan* plan);
// Notes a text about the line that runs; takes Python's lock, so without ours. Frees the text (NULL: nothing).
void tt_explain_note_take(tt_explain_kind kind, char* text);

// A trace, as far as it can be told from others: its calls' plans and what they read.
typedef struct tt_explain_step {
  uint64_t serial, wiring;
  const char* op;
} tt_explain_step;
typedef struct tt_explain_trace {
  size_t count;
  int kept;  // results
  tt_explain_step* steps;
} tt_explain_trace;
// How near two traces are: calls in common at their beginnings and ends, the same ops, lengths.
long tt_explain_likeness(const tt_explain_trace* a, const tt_explain_trace* b);
// What is new about a trace. malloc'ed.
char* tt_explain_trace_locked(const tt_explain_trace* nearest, const tt_explain_trace* now);

#endif  // TT_RUN_EXPLAIN_H
