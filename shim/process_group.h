// SPDX-License-Identifier: Apache-2.0
//
// The process group "tpu_dist": a c10d backend that carries tensors between processes by way of the host. collective.cpp has
// what it is made of: copies between host and device, and the object that stands for a running collective.
#pragma once

#include <Python.h>

#include <ATen/core/Tensor.h>
#include <c10/core/InferenceMode.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <torch/csrc/distributed/c10d/Types.hpp>
#include <torch/csrc/distributed/c10d/Work.hpp>

#include <functional>
#include <string>
#include <vector>

namespace tt {

using TensorList = std::vector<at::Tensor>;
using WorkPtr = c10::intrusive_ptr<c10d::Work>;

// process_group.cpp: wraps a gloo backend, given as torch's Python object: (backend, timeout in milliseconds) -> backend.
PyObject* process_group(PyObject*, PyObject* args);

// In scope while host tensors are made and computed with: the caller's modes (inference, torch dispatch) do not see them.
struct HostScope {
  const c10::InferenceMode inference{false};
  const c10::impl::ExcludeDispatchKeyGuard python{c10::DispatchKeySet(
      {c10::DispatchKey::Python, c10::DispatchKey::PythonTLSSnapshot, c10::DispatchKey::PythonDispatcher})};
};

// Throws unless it is a tensor that can be carried.
void check_carried(const at::Tensor& tensor);
inline int64_t bytes_of(const at::Tensor& tensor) {
  return static_cast<int64_t>(tensor.nbytes());
}

// A flat host tensor, uninitialised.
at::Tensor host_flat(int64_t count, c10::ScalarType dtype = at::kByte);
// Copies between a device tensor and dense host memory, at `at` bytes into `host`.
void pull(const at::Tensor& src, const at::Tensor& host, int64_t at = 0);
void push(const at::Tensor& dst, const at::Tensor& host, int64_t at = 0);
// Tensors one after the other, as bytes.
at::Tensor pull_bytes(const TensorList& tensors);
void push_bytes(const TensorList& tensors, const at::Tensor& host);

// The dtype of all the tensors; throws if they differ.
c10::ScalarType one_dtype(const TensorList& tensors);

// A reduction as gloo gets it, and the way back. On bools a sum is "any" and a product "all".
class Reduction {
 public:
  Reduction(const TensorList& inputs, const c10d::ReduceOp& op, int ranks);
  c10d::ReduceOp op() const;  // what gloo computes on `flat`
  at::Tensor value() const;   // the outcome in the tensors' own dtype

  at::Tensor flat;  // all inputs, one after the other

 private:
  c10::ScalarType carrier() const;

  c10d::ReduceOp::RedOpType op_;
  c10::ScalarType dtype_;
  int64_t ranks_;
};

// A collective under way: done when all its parts (gloo's works) are, and `finish` has put the results on the device.
class TpuWork final : public c10d::Work {
 public:
  TpuWork(int rank, c10d::OpType type, TensorList outputs, std::function<void()> finish);

  // Completes when the parts do. Parts with no future (sends and receives) are waited for in threads of their own, so that
  // this one can be polled and can have a future.
  void follow(std::vector<WorkPtr> parts);
  // Waits, whatever the outcome.
  void settle();

  int sourceRank() const override;
  TensorList result() override { return outputs_; }
  void abort() override;
  c10::intrusive_ptr<c10::ivalue::Future> getFuture() override { return future_; }
  uint64_t getSequencenumber() const override;

 private:
  void part_done(const std::exception_ptr& error);

  const TensorList outputs_;
  std::function<void()> finish_;
  const c10::intrusive_ptr<c10::ivalue::Future> future_;
  std::vector<WorkPtr> parts_;
  std::atomic<size_t> waiting_for_{0};
  std::exception_ptr error_;
};

}  // namespace tt
