// SPDX-License-Identifier: Apache-2.0
//
// What PyTorch says a call's outputs look like.
#pragma once

#include "stack.h"

namespace tt {

struct Inferred {
  std::vector<tt_meta> metas;       // tensor outputs in schema order, lists flattened
  std::vector<c10::IValue> others;  // outputs that are no tensors, in schema order
};

// Runs the op's Meta kernel on the arguments' shapes; throws what PyTorch throws for bad arguments. out= tensors of another shape
// are resized (with PyTorch's warning), and *out_resized is set: the arguments must be described again.
// A Meta kernel's refusal. Its text is seldom what the CPU says, so the call is then made there, to raise or to be computed.
struct MetaRefused : std::runtime_error {
  using std::runtime_error::runtime_error;
};

Inferred infer(const c10::OperatorHandle& op, const Overload& overload, c10::ArrayRef<c10::IValue> arguments,
               bool* out_resized);

// ask.cpp: what only an op's own kernel knows, asked of the CPU's on small stand-ins; it raises what PyTorch raises.
// Whether an op casts its result to the dtype of out= (exp does, neg does not). False: not asked, as the tensors are large.
bool ask_cast(const c10::OperatorHandle& op, const Overload& overload, c10::ArrayRef<c10::IValue> arguments);
// Whether a resizing or averaging op takes integers.
void ask_integers(const c10::OperatorHandle& op, const Overload& overload, c10::ArrayRef<c10::IValue> arguments);

// True while infer() lets a structured op's own kernel work out its output: `run` then only notes the out= tensors.
bool probing();
void note_probe(const Overload& overload, torch::jit::Stack* stack);

// decomp.cpp: PyTorch's decomposition of an op, run on the stack as it is. False if it has none.
bool has_decomposition(const c10::OperatorHandle& op);
void run_decomposition(const c10::OperatorHandle& op, torch::jit::Stack* stack);

// decomp.cpp: how a call on tensors of another layout is served ("cpu kernel", "python", or the error's text), and the Python kernel.
std::string layout_way(const char* layout, const c10::OperatorHandle& op, bool has_cpu_kernel);
void layout_run(const char* layout, const c10::OperatorHandle& op, torch::jit::Stack* stack);

}  // namespace tt
