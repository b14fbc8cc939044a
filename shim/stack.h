// SPDX-License-Identifier: Apache-2.0
//
// A boxed call's arguments as a tt_call, and what is known of each overload from its schema.
#pragma once

#include <ATen/core/ivalue.h>
#include <c10/util/SmallVector.h>

#include <forward_list>
#include <optional>

#include "shim.h"

namespace tt {

enum class ArgKind : uint8_t {
  Tensor,
  TensorList,
  Scalar,
  Int,
  Float,
  Bool,
  IntList,
  FloatList,
  BoolList,
  ScalarList,
  String,
  Dtype,
  Device,
  Opaque,
  Generator
};

struct ArgInfo {
  ArgKind kind;
  std::optional<c10::IValue> fallback;  // the schema's default
};

enum class ReturnKind : uint8_t { Tensor, TensorList, Other };

// One registered overload.
struct Overload {
  tt_overload* c = nullptr;
  std::string name;  // "aten::add.Tensor"
  std::vector<ArgInfo> args;
  std::vector<ReturnKind> returns;
  std::vector<int> return_alias;     // by return: the argument it is, or -1
  std::vector<int> mutated;          // arguments written to, in order
  int indices = -1;                  // a Tensor?[] argument, which may hold masks
  int check_errors = -1;             // linalg_inv_ex and the like: the argument that asks for an exception
  std::string spreading;             // see dynamic.h
  bool outputs_are_mutated = false;  // returns nothing: its outputs are the mutated arguments
};

// Reads the schema; throws for argument types that no op of ours has.
Overload read_schema(const c10::FunctionSchema& schema, const tt_op* op);

// The arguments of one call. Borrows from the stack.
class CallArgs {
 public:
  CallArgs(const Overload& overload, c10::ArrayRef<c10::IValue> arguments);
  tt_call call{};

 private:
  void add(const Overload& overload, size_t index, const c10::IValue& value);
  void add_tensor(const at::Tensor& tensor);

  c10::SmallVector<tt_argument, 12> args_;
  c10::SmallVector<tt_tensor, 8> described_;
  c10::SmallVector<int64_t, 16> ints_;
  c10::SmallVector<double, 4> floats_;
  c10::SmallVector<tt_scalar, 4> numbers_;
  std::forward_list<std::string> texts_;  // newest first; strings stay where they are
  int device_ = -1;
};

// Plain lists from IValues, symbolic or not.
std::vector<int64_t> int_list(const c10::IValue& value);
tt_scalar scalar_of(const c10::IValue& value);

}  // namespace tt
