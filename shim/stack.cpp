// SPDX-License-Identifier: Apache-2.0
//
// From PyTorch's boxed arguments to tt_call.
#include "stack.h"

#include "dynamic.h"

#include <ATen/core/List.h>

namespace tt {

using c10::TypeKind;

static ArgKind list_kind(const c10::TypePtr& element) {
  switch (element->kind()) {
    case TypeKind::TensorType:
    case TypeKind::OptionalType:
      return ArgKind::TensorList;
    case TypeKind::IntType:
    case TypeKind::SymIntType:
      return ArgKind::IntList;
    case TypeKind::FloatType:
      return ArgKind::FloatList;
    case TypeKind::BoolType:
      return ArgKind::BoolList;
    case TypeKind::NumberType:
      return ArgKind::ScalarList;
    default:
      return ArgKind::Opaque;
  }
}

static ArgKind kind_of(const c10::Argument& arg) {
  c10::TypePtr type = arg.real_type();
  if (auto optional = type->cast<c10::OptionalType>()) {
    type = optional->getElementType();
  }
  switch (type->kind()) {
    case TypeKind::TensorType:
      return ArgKind::Tensor;
    case TypeKind::ListType:
      return list_kind(type->expectRef<c10::ListType>().getElementType());
    case TypeKind::NumberType:
      return ArgKind::Scalar;
    case TypeKind::IntType:
    case TypeKind::SymIntType:
      return ArgKind::Int;
    case TypeKind::FloatType:
    case TypeKind::SymFloatType:
      return ArgKind::Float;
    case TypeKind::BoolType:
    case TypeKind::SymBoolType:
      return ArgKind::Bool;
    case TypeKind::StringType:
      return ArgKind::String;
    case TypeKind::ScalarTypeType:
      return ArgKind::Dtype;
    case TypeKind::DeviceObjType:
      return ArgKind::Device;
    case TypeKind::GeneratorType:
      return ArgKind::Generator;
    default:
      return ArgKind::Opaque;
  }
}

Overload read_schema(const c10::FunctionSchema& schema, const tt_op* op) {
  Overload o;
  o.name = schema.overload_name().empty() ? schema.name() : schema.name() + "." + schema.overload_name();
  o.spreading = spreading(schema);
  uint64_t mutates = 0;
  for (size_t i = 0; i < schema.arguments().size(); ++i) {
    const c10::Argument& arg = schema.arguments()[i];
    o.args.push_back({kind_of(arg), arg.default_value()});
    if (arg.name() == "indices" && o.args.back().kind == ArgKind::TensorList) {
      o.indices = static_cast<int>(i);
    }
    if (arg.name() == "check_errors") {
      o.check_errors = static_cast<int>(i);
    }
    if (arg.alias_info() != nullptr && arg.alias_info()->isWrite()) {
      o.mutated.push_back(static_cast<int>(i));
      mutates |= uint64_t{1} << i;
    }
  }
  std::vector<int> c_alias;
  for (const c10::Argument& ret : schema.returns()) {
    auto kind = ret.type()->kind() == TypeKind::TensorType ? ReturnKind::Tensor
                : ret.type()->kind() == TypeKind::ListType &&
                        list_kind(ret.type()->expectRef<c10::ListType>().getElementType()) == ArgKind::TensorList
                    ? ReturnKind::TensorList
                    : ReturnKind::Other;
    int alias = -1;
    if (ret.alias_info() != nullptr && ret.alias_info()->isWrite()) {
      for (int i : o.mutated) {
        if (*schema.arguments()[static_cast<size_t>(i)].alias_info() == *ret.alias_info()) {
          alias = i;
        }
      }
    }
    o.returns.push_back(kind);
    o.return_alias.push_back(alias);
    if (kind != ReturnKind::Other) {
      c_alias.push_back(alias);
    }
  }
  o.outputs_are_mutated = schema.returns().empty();
  if (o.outputs_are_mutated) {
    c_alias = o.mutated;
  }
  std::string plain = o.name.compare(0, 6, "aten::") == 0 ? o.name.substr(6) : o.name;
  o.c = tt_overload_create(plain.c_str(), op, static_cast<int>(o.args.size()), mutates,
                           static_cast<int>(c_alias.size()), c_alias.data());
  return o;
}

tt_scalar scalar_of(const c10::IValue& value) {
  if (value.isInt()) {
    return {'i', value.toInt(), static_cast<double>(value.toInt()), 0};
  }
  if (value.isDouble()) {
    return {'f', 0, value.toDouble(), 0};
  }
  if (value.isBool()) {
    return {'i', value.toBool(), static_cast<double>(value.toBool()), 0};
  }
  if (value.isComplexDouble()) {
    auto z = value.toComplexDouble();
    return {'c', 0, z.real(), z.imag()};
  }
  if (value.isSymInt()) {
    int64_t i = value.toSymInt().guard_int(__FILE__, __LINE__);
    return {'i', i, static_cast<double>(i), 0};
  }
  if (value.isSymFloat()) {
    return {'f', 0, value.toSymFloat().guard_float(__FILE__, __LINE__), 0};
  }
  if (value.isSymBool()) {
    bool truth = value.toSymBool().guard_bool(__FILE__, __LINE__);
    return {'i', truth, static_cast<double>(truth), 0};
  }
  TORCH_CHECK_TYPE(false, "expected a number, got ", value.tagKind());
}

std::vector<int64_t> int_list(const c10::IValue& value) {
  if (value.isIntList()) {
    return value.toIntVector();
  }
  if (value.isInt() || value.isSymInt()) {
    return {scalar_of(value).i};
  }
  std::vector<int64_t> out;
  for (const c10::IValue& item : value.toListRef()) {
    out.push_back(scalar_of(item).i);
  }
  return out;
}

static bool is_default(const std::optional<c10::IValue>& fallback, const c10::IValue& value) {
  if (!fallback.has_value() || fallback->isNone()) {
    return false;
  }
  tt_scalar a = scalar_of(*fallback);
  tt_scalar b = scalar_of(value);
  // 1 and 1.0 differ: the class decides types.
  return a.kind == b.kind && a.i == b.i && a.re == b.re && a.im == b.im;
}

void CallArgs::add_tensor(const at::Tensor& tensor) {
  described_.emplace_back();
  describe(tensor, &described_.back());
  if (device_ < 0 && described_.back().storage != nullptr) {
    device_ = tensor.device().index();
  }
}

void CallArgs::add(const Overload& overload, size_t index, const c10::IValue& value) {
  const ArgInfo& info = overload.args[index];
  tt_argument a{};
  a.kind = TT_ARG_NONE;
  if (info.kind == ArgKind::Tensor) {
    a.kind = TT_ARG_TENSOR;
    a.count = 1;
    static const at::Tensor none;
    add_tensor(value.isTensor() ? value.toTensor() : none);
    args_.push_back(a);
    return;
  }
  if (value.isNone()) {
    args_.push_back(a);
    return;
  }
  switch (info.kind) {
    case ArgKind::TensorList: {
      a.kind = TT_ARG_TENSORS;
      if (value.isTensorList()) {
        for (const at::Tensor& t : value.toTensorVector()) {
          add_tensor(t);
          a.count += 1;
        }
      } else {
        for (const c10::IValue& item : value.toListRef()) {
          add_tensor(item.isTensor() ? item.toTensor() : at::Tensor());
          a.count += 1;
        }
      }
      break;
    }
    case ArgKind::Scalar:
    case ArgKind::Float: {
      a.number = scalar_of(value);
      a.kind = a.number.kind == 'c'   ? TT_ARG_COMPLEX
               : a.number.kind == 'f' ? TT_ARG_FLOAT
               : value.isBool()       ? TT_ARG_BOOL
                                      : TT_ARG_INT;
      a.runtime = !is_default(info.fallback, value);
      break;
    }
    case ArgKind::Int:
      a.kind = TT_ARG_INT;
      a.number = scalar_of(value);
      break;
    case ArgKind::Bool:
      a.kind = TT_ARG_BOOL;
      a.number = scalar_of(value);
      break;
    case ArgKind::IntList: {
      a.kind = TT_ARG_INTS;
      std::vector<int64_t> list = int_list(value);
      a.count = static_cast<int32_t>(list.size());
      ints_.append(list.begin(), list.end());
      break;
    }
    case ArgKind::BoolList: {
      a.kind = TT_ARG_BOOLS;
      for (bool item : value.toBoolList()) {
        ints_.push_back(item);
        a.count += 1;
      }
      break;
    }
    case ArgKind::FloatList: {
      a.kind = TT_ARG_FLOATS;
      a.runtime = true;
      for (double item : value.toDoubleVector()) {
        floats_.push_back(item);
        a.count += 1;
      }
      break;
    }
    case ArgKind::ScalarList: {
      a.kind = TT_ARG_NUMBERS;
      a.runtime = true;
      for (const c10::IValue& item : value.toListRef()) {
        numbers_.push_back(scalar_of(item));
        if (item.isBool()) {
          numbers_.back().kind = 'b';  // the class decides types
        }
        a.count += 1;
      }
      break;
    }
    case ArgKind::String:
      a.kind = TT_ARG_STRING;
      texts_.push_front(value.toStringRef());
      a.text = texts_.front().c_str();
      break;
    case ArgKind::Dtype:
      a.kind = TT_ARG_DTYPE;
      a.number.i = from_torch(value.toScalarType());
      break;
    case ArgKind::Device:
      if (value.toDevice().type() == kTpu && device_ < 0) {
        device_ = value.toDevice().has_index() ? value.toDevice().index() : current_device();
      }
      break;
    case ArgKind::Generator: {
      std::optional<at::Generator> generator = value.toGenerator();
      call.generator = generator_of(generator);
      break;
    }
    default:
      a.kind = TT_ARG_OPAQUE;
      a.number.i = value.isInt() ? value.toInt() : 0;
      break;
  }
  args_.push_back(a);
}

CallArgs::CallArgs(const Overload& overload, c10::ArrayRef<c10::IValue> arguments) {
  args_.reserve(arguments.size());
  for (size_t i = 0; i < arguments.size(); ++i) {
    add(overload, i, arguments[i]);
  }
  // Now that the arrays stay where they are, point into them.
  size_t tensor = 0, integer = 0, real = 0, number = 0;
  for (tt_argument& a : args_) {
    auto n = static_cast<size_t>(a.count);
    switch (static_cast<tt_arg_kind>(a.kind)) {
      case TT_ARG_TENSOR:
      case TT_ARG_TENSORS:
        a.tensors = described_.data() + tensor;
        tensor += n;
        break;
      case TT_ARG_INTS:
      case TT_ARG_BOOLS:
        a.ints = ints_.data() + integer;
        integer += n;
        break;
      case TT_ARG_FLOATS:
        a.floats = floats_.data() + real;
        real += n;
        break;
      case TT_ARG_NUMBERS:
        a.numbers = numbers_.data() + number;
        number += n;
        break;
      default:
        break;
    }
  }
  call.overload = overload.c;
  call.num_args = static_cast<int>(args_.size());
  call.args = args_.data();
  call.device = device_ < 0 ? current_device() : device_;
  call.default_float = from_torch(c10::get_default_dtype_as_scalartype());
}

}  // namespace tt
