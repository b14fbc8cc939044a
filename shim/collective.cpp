// SPDX-License-Identifier: Apache-2.0
//
// What process_group.cpp is made of: copies between a device tensor and dense host memory, reductions, and collectives under
// way. Copies go straight to the C API: autograd, versions and dispatch modes have no part in them, as with any other backend
// of c10d.
#include <ATen/EmptyTensor.h>
#include <ATen/core/ivalue_inl.h>
#include <ATen/ops/div.h>
#include <ATen/ops/mul.h>

#include <set>
#include <thread>

#include "process_group.h"
#include "shim.h"

namespace tt {

using c10d::ReduceOp;

void check_carried(const at::Tensor& tensor) {
  TORCH_CHECK(tensor.device().type() == kTpu, "expected a tensor on tpu for tpu_dist, got one on ", tensor.device());
  TORCH_CHECK(tensor.layout() == at::kStrided, "expected a dense tensor for tpu_dist, got ", tensor.layout());
  TORCH_CHECK(
      !tensor.is_conj() && !tensor.is_neg(),
      "expected a tensor with no pending conjugation or negation for tpu_dist: call resolve_conj() or resolve_neg()");
}

at::Tensor host_flat(int64_t count, c10::ScalarType dtype) {
  return at::detail::empty_cpu({count}, at::TensorOptions().dtype(dtype));
}

void pull(const at::Tensor& src, const at::Tensor& host, int64_t at) {
  check_carried(src);
  TORCH_INTERNAL_ASSERT(at + bytes_of(src) <= bytes_of(host));
  if (src.numel() == 0) {
    return;
  }
  tt_tensor source;
  describe(src, &source);
  check(tt_copy_to_host(&source, static_cast<char*>(host.mutable_data_ptr()) + at));
}

void push(const at::Tensor& dst, const at::Tensor& host, int64_t at) {
  TORCH_INTERNAL_ASSERT(at + bytes_of(dst) <= bytes_of(host));
  if (dst.numel() == 0) {
    return;
  }
  tt_tensor target;
  describe(dst, &target);
  check(tt_copy_from_host(&target, static_cast<const char*>(host.const_data_ptr()) + at));
}

at::Tensor pull_bytes(const TensorList& tensors) {
  int64_t total = 0;
  for (const at::Tensor& tensor : tensors) {
    total += bytes_of(tensor);
  }
  at::Tensor host = host_flat(total);
  int64_t at = 0;
  for (const at::Tensor& tensor : tensors) {
    pull(tensor, host, at);
    at += bytes_of(tensor);
  }
  return host;
}

void push_bytes(const TensorList& tensors, const at::Tensor& host) {
  int64_t at = 0;
  for (const at::Tensor& tensor : tensors) {
    push(tensor, host, at);
    at += bytes_of(tensor);
  }
}

// ---- reductions -----------------------------------------------------------------------------------------------------------------
c10::ScalarType one_dtype(const TensorList& tensors) {
  TORCH_CHECK(!tensors.empty(), "expected tensors, got an empty list");
  for (const at::Tensor& tensor : tensors) {
    TORCH_CHECK(tensor.scalar_type() == tensors.front().scalar_type(), "expected tensors of one dtype, got ",
                tensors.front().scalar_type(), " and ", tensor.scalar_type());
  }
  return tensors.front().scalar_type();
}

Reduction::Reduction(const TensorList& inputs, const ReduceOp& op, int ranks)
    : op_(op.op_), dtype_(one_dtype(inputs)), ranks_(ranks) {
  int64_t count = 0;
  for (const at::Tensor& input : inputs) {
    count += input.numel();
  }
  const HostScope scope;
  const at::Tensor host = host_flat(count, dtype_);
  int64_t at = 0;
  for (const at::Tensor& input : inputs) {
    pull(input, host, at);
    at += bytes_of(input);
  }
  flat = host.to(carrier());
  if (op_ == ReduceOp::PREMUL_SUM) {
    TORCH_CHECK(c10::isFloatingType(dtype_), "expected a floating-point tensor for PREMUL_SUM, got ", dtype_);
    const auto* factor = dynamic_cast<const c10d::PreMulSumSupplement*>(op.supplement_.get());
    TORCH_CHECK(factor != nullptr, "expected a factor with PREMUL_SUM, got none");
    flat = at::mul(flat,
                   factor->tensor_factor.defined() ? factor->tensor_factor.item() : at::Scalar(factor->double_factor));
  }
}

ReduceOp Reduction::op() const {
  if (dtype_ == at::kBool) {
    TORCH_CHECK(op_ != ReduceOp::AVG, "expected a numeric tensor for AVG, got Bool");
    return op_ == ReduceOp::SUM ? ReduceOp::MAX : op_ == ReduceOp::PRODUCT ? ReduceOp::MIN : op_;
  }
  return op_ == ReduceOp::AVG || op_ == ReduceOp::PREMUL_SUM ? ReduceOp::SUM : op_;
}

at::Tensor Reduction::value() const {
  at::Tensor result = flat;
  if (op_ == ReduceOp::AVG) {
    result = c10::isFloatingType(dtype_) ? at::div(result, ranks_) : at::div(result, ranks_, "trunc");
  }
  return result.to(dtype_);
}

c10::ScalarType Reduction::carrier() const {
  switch (dtype_) {
    case at::kFloat:
    case at::kDouble:
    case at::kChar:
    case at::kByte:
    case at::kInt:
    case at::kLong:
      return dtype_;
    case at::kHalf:
    case at::kBFloat16:
      return at::kFloat;
    case at::kBool:
      return at::kByte;
    case at::kShort:
    case at::kUInt16:
      return at::kInt;
    case at::kUInt32:
      return at::kLong;
    default:
      C10_THROW_ERROR(NotImplementedError, c10::str("tpu_dist cannot reduce tensors of ", dtype_));
  }
}

// ---- works under way ------------------------------------------------------------------------------------------------------------
namespace {

c10::intrusive_ptr<c10::ivalue::Future> future_for(const TensorList& tensors) {
  std::set<c10::DeviceIndex> indices;
  for (const at::Tensor& tensor : tensors) {
    indices.insert(tensor.device().index());
  }
  std::vector<c10::Device> devices;
  for (const c10::DeviceIndex index : indices) {
    devices.emplace_back(kTpu, index);
  }
  return c10::make_intrusive<c10::ivalue::Future>(c10::ListType::create(c10::TensorType::get()), std::move(devices));
}

bool has_future(c10d::OpType type) {
  return !c10d::isP2POp(type);
}

}  // namespace

TpuWork::TpuWork(int rank, c10d::OpType type, TensorList outputs, std::function<void()> finish)
    : Work(rank, type), outputs_(std::move(outputs)), finish_(std::move(finish)), future_(future_for(outputs_)) {}

void TpuWork::follow(std::vector<WorkPtr> parts) {
  parts_ = std::move(parts);
  waiting_for_ = parts_.size() + 1;  // one for this function
  const auto self = c10::intrusive_ptr<TpuWork>::reclaim_copy(this);
  for (const WorkPtr& part : parts_) {
    if (has_future(opType_)) {
      part->getFuture()->addCallback([self](c10::ivalue::Future& future) {
        self->part_done(future.hasError() ? future.exception_ptr() : nullptr);
      });
    } else {
      std::thread([self, part] {
        std::exception_ptr error;
        try {
          TORCH_CHECK(part->wait(), "a send or receive of tpu_dist was aborted");
        } catch (...) {
          error = std::current_exception();
        }
        self->part_done(error);
      }).detach();
    }
  }
  part_done(nullptr);
}

void TpuWork::part_done(const std::exception_ptr& error) {
  if (error != nullptr) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (error_ == nullptr) {
      error_ = error;
    }
  }
  if (waiting_for_.fetch_sub(1) != 1) {
    return;
  }
  std::exception_ptr outcome = error_;
  if (outcome == nullptr && finish_) {
    try {
      const HostScope scope;
      finish_();
    } catch (...) {
      outcome = std::current_exception();
    }
  }
  finish_ = nullptr;  // lets go of the host's copies
  Work::finish(outcome);
  if (outcome != nullptr) {
    future_->setError(outcome);
  } else {
    future_->markCompleted(c10::IValue(outputs_));
  }
}

void TpuWork::settle() {
  std::unique_lock<std::mutex> lock(mutex_);
  cv_.wait(lock, [&] { return completed_; });
}

int TpuWork::sourceRank() const {
  TORCH_CHECK(parts_.size() == 1, "expected a receive, got a work of ", parts_.size(), " parts");
  return parts_.front()->sourceRank();
}

void TpuWork::abort() {
  TORCH_CHECK(!has_future(opType_), "a collective of tpu_dist cannot be aborted; it ends at its timeout");
  for (const WorkPtr& part : parts_) {
    part->abort();
  }
}

uint64_t TpuWork::getSequencenumber() const {
  return parts_.empty() ? 0 : parts_.front()->getSequencenumber();
}

}  // namespace tt
