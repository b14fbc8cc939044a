// SPDX-License-Identifier: Apache-2.0
//
// The c10d backend "tpu_dist". The plugins have no collectives between processes, so gloo carries the tensors: each collective
// copies to the host, hands gloo flat buffers, and copies back when gloo is done. What only moves data travels as bytes, so
// every dtype can; reductions are computed in a type that gloo has and that loses nothing.
#include "process_group.h"

#include <c10/core/impl/VirtualGuardImpl.h>
#include <torch/csrc/Exceptions.h>
#include <torch/csrc/utils/pybind.h>
#include <torch/csrc/distributed/c10d/Backend.hpp>

#include <numeric>

#include "gil.h"
#include "shim.h"

namespace tt {
namespace {

using c10d::OpType;
using c10d::ReduceOp;

constexpr const char* kName = "tpu_dist";

template <class T>
const T& only(const std::vector<T>& list, const char* what) {
  TORCH_CHECK(list.size() == 1, "expected one ", what, ", got ", list.size());
  return list.front();
}

class TpuBackend final : public c10d::Backend {
 public:
  TpuBackend(c10::intrusive_ptr<c10d::Backend> gloo, std::chrono::milliseconds timeout)
      : Backend(gloo->getRank(), gloo->getSize()),
        gloo_(std::move(gloo)),
        options_(c10::make_intrusive<Options>(kName, timeout)) {
    init();
  }
  // gloo's threads finish what is queued, and may need Python's lock for that.
  ~TpuBackend() override {
    const NoGil no_gil;
    gloo_.reset();
  }

  const std::string getBackendName() const override { return kName; }
  c10::intrusive_ptr<Options> getBackendOptions() override { return options_; }
  bool supportsSplitting() const override { return false; }
  bool supportsCoalescing() const override { return true; }
  void setTimeout(std::chrono::milliseconds timeout) override {
    options_->timeout = timeout;
    gloo_->setTimeout(timeout);
  }
  void setGroupUid(const std::string& uid) override {
    Backend::setGroupUid(uid);
    gloo_->setGroupUid(uid);
  }
  void setSequenceNumberForGroup() override { gloo_->setSequenceNumberForGroup(); }
  uint64_t getSequenceNumberForGroup() override { return gloo_->getSequenceNumberForGroup(); }
  c10d::ErrorType getError() override { return c10d::ErrorType::SUCCESS; }
  void shutdown() override { gloo_->shutdown(); }

  // Ends sends and receives that are under way; gloo ends collectives at their timeout.
  void abort() override {
    std::vector<c10::intrusive_ptr<TpuWork>> works;
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      for (const auto& weak : transfers_) {
        if (auto work = weak.lock()) {
          works.push_back(std::move(work));
        }
      }
      transfers_.clear();
    }
    for (const auto& work : works) {
      if (!work->isCompleted()) {
        work->abort();
      }
    }
    gloo_->abort();
  }

  // The works between the two calls become one.
  void startCoalescing() override {
    const std::lock_guard<std::mutex> lock(mutex_);
    coalescing_ = true;
    coalesced_.clear();
  }
  WorkPtr endCoalescing() override {
    std::vector<WorkPtr> parts;
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      coalescing_ = false;
      parts.swap(coalesced_);
    }
    TensorList outputs;
    for (const WorkPtr& part : parts) {
      const TensorList more = part->result();
      outputs.insert(outputs.end(), more.begin(), more.end());
    }
    const auto work = c10::make_intrusive<TpuWork>(getRank(), OpType::COALESCED, std::move(outputs), nullptr);
    work->follow(std::move(parts));
    return work;
  }

  WorkPtr broadcast(TensorList& tensors, const c10d::BroadcastOptions& opts) override {
    const at::Tensor tensor = ready(only(tensors, "tensor"));
    const bool root = getRank() == opts.rootRank;
    const at::Tensor host = root ? pull_bytes({tensor}) : host_flat(bytes_of(tensor));
    std::vector<WorkPtr> parts;
    if (bytes_of(tensor) > 0) {
      TensorList list{host};
      parts.push_back(gloo_->broadcast(list, opts));
    }
    return start(OpType::BROADCAST, {tensor}, std::move(parts), [=] {
      if (!root) {
        push(tensor, host);
      }
    });
  }

  WorkPtr allreduce(TensorList& tensors, const c10d::AllreduceOptions& opts) override {
    only(tensors, "tensor");
    return reduce_all(OpType::ALLREDUCE, tensors, opts);
  }
  WorkPtr allreduce_coalesced(TensorList& tensors, const c10d::AllreduceCoalescedOptions& opts) override {
    return reduce_all(OpType::ALLREDUCE_COALESCED, tensors, opts);
  }

  WorkPtr reduce(TensorList& tensors, const c10d::ReduceOptions& opts) override {
    const at::Tensor tensor = ready(only(tensors, "tensor"));
    const Reduction reduction({tensor}, opts.reduceOp, getSize());
    c10d::ReduceOptions plain = opts;
    plain.reduceOp = reduction.op();
    std::vector<WorkPtr> parts;
    if (tensor.numel() > 0) {
      TensorList list{reduction.flat};
      parts.push_back(gloo_->reduce(list, plain));
    }
    const bool root = getRank() == opts.rootRank;
    return start(OpType::REDUCE, {tensor}, std::move(parts), [=] {
      if (root) {
        push(tensor, reduction.value());
      }
    });
  }

  // Sizes may differ between ranks: then each rank broadcasts its own.
  WorkPtr allgather(std::vector<TensorList>& outputs, TensorList& inputs, const c10d::AllgatherOptions& opts) override {
    const TensorList out = ready(only(outputs, "list of outputs"));
    const at::Tensor input = ready(only(inputs, "input"));
    one_for_each_rank(out);
    TORCH_CHECK(bytes_of(out[me()]) == bytes_of(input), "expected output ", getRank(), " to have this rank's ",
                input.numel(), " elements, got ", out[me()].numel());
    bool even = true;
    for (const at::Tensor& tensor : out) {
      even = even && bytes_of(tensor) == bytes_of(input);
    }
    TensorList hosts;
    for (const at::Tensor& tensor : out) {
      hosts.push_back(&tensor == &out[me()] && !even ? pull_bytes({input}) : host_flat(bytes_of(tensor)));
    }
    std::vector<WorkPtr> parts;
    if (even && bytes_of(input) > 0) {
      std::vector<TensorList> to{hosts};
      TensorList from{pull_bytes({input})};
      parts.push_back(gloo_->allgather(to, from, opts));
    }
    for (size_t i = 0; !even && i < hosts.size(); ++i) {
      if (bytes_of(hosts[i]) > 0) {
        c10d::BroadcastOptions one;
        one.rootRank = static_cast<int64_t>(i);
        one.timeout = opts.timeout;
        TensorList list{hosts[i]};
        parts.push_back(gloo_->broadcast(list, one));
      }
    }
    return start(OpType::ALLGATHER, out, std::move(parts), [=] {
      for (size_t i = 0; i < out.size(); ++i) {
        push(out[i], hosts[i]);
      }
    });
  }

  WorkPtr _allgather_base(at::Tensor& output, at::Tensor& input, const c10d::AllgatherOptions& opts) override {
    return gather_all(OpType::_ALLGATHER_BASE, {output}, {input}, opts);
  }
  WorkPtr allgather_into_tensor_coalesced(TensorList& outputs, TensorList& inputs,
                                          const c10d::AllgatherOptions& opts) override {
    return gather_all(OpType::ALLGATHER_COALESCED, outputs, inputs, opts);
  }

  WorkPtr gather(std::vector<TensorList>& outputs, TensorList& inputs, const c10d::GatherOptions& opts) override {
    const at::Tensor input = ready(only(inputs, "input"));
    TensorList out, hosts;
    if (getRank() == opts.rootRank) {
      out = ready(only(outputs, "list of outputs on the root"));
      one_for_each_rank(out);
      for (const at::Tensor& tensor : out) {
        TORCH_CHECK(bytes_of(tensor) == bytes_of(input), "expected outputs of ", input.numel(), " elements, got ",
                    tensor.numel());
        hosts.push_back(host_flat(bytes_of(tensor)));
      }
    }
    std::vector<WorkPtr> parts;
    if (bytes_of(input) > 0) {
      std::vector<TensorList> to;
      if (!hosts.empty()) {
        to.push_back(hosts);
      }
      TensorList from{pull_bytes({input})};
      parts.push_back(gloo_->gather(to, from, opts));
    }
    return start(OpType::GATHER, out, std::move(parts), [=] {
      for (size_t i = 0; i < out.size(); ++i) {
        push(out[i], hosts[i]);
      }
    });
  }

  WorkPtr scatter(TensorList& outputs, std::vector<TensorList>& inputs, const c10d::ScatterOptions& opts) override {
    const at::Tensor output = ready(only(outputs, "output"));
    std::vector<TensorList> from;
    if (getRank() == opts.rootRank) {
      const TensorList in = ready(only(inputs, "list of inputs on the root"));
      one_for_each_rank(in);
      from.emplace_back();
      for (const at::Tensor& tensor : in) {
        TORCH_CHECK(bytes_of(tensor) == bytes_of(output), "expected inputs of ", output.numel(), " elements, got ",
                    tensor.numel());
        from.front().push_back(pull_bytes({tensor}));
      }
    }
    const at::Tensor host = host_flat(bytes_of(output));
    std::vector<WorkPtr> parts;
    if (bytes_of(output) > 0) {
      TensorList to{host};
      parts.push_back(gloo_->scatter(to, from, opts));
    }
    return start(OpType::SCATTER, {output}, std::move(parts), [=] { push(output, host); });
  }

  // gloo reduces everything everywhere; each rank keeps its part.
  WorkPtr reduce_scatter(TensorList& outputs, std::vector<TensorList>& inputs,
                         const c10d::ReduceScatterOptions& opts) override {
    const at::Tensor output = ready(only(outputs, "output"));
    const TensorList in = ready(only(inputs, "list of inputs"));
    one_for_each_rank(in);
    TORCH_CHECK(in[me()].numel() == output.numel() && one_dtype(in) == output.scalar_type(),
                "expected an output like input ", getRank(), ", got ", output.numel(), " elements of ",
                output.scalar_type());
    int64_t first = 0;
    for (size_t i = 0; i < me(); ++i) {
      first += bytes_of(in[i]);
    }
    std::vector<WorkPtr> parts;
    const Reduction reduction = reduce_into(in, opts.reduceOp, opts.timeout, &parts);
    return start(OpType::REDUCE_SCATTER, {output}, std::move(parts), [=] { push(output, reduction.value(), first); });
  }

  WorkPtr _reduce_scatter_base(at::Tensor& output, at::Tensor& input, const c10d::ReduceScatterOptions& opts) override {
    return scatter_reduced(OpType::_REDUCE_SCATTER_BASE, {output}, {input}, opts);
  }
  WorkPtr reduce_scatter_tensor_coalesced(TensorList& outputs, TensorList& inputs,
                                          const c10d::ReduceScatterOptions& opts) override {
    return scatter_reduced(OpType::REDUCE_SCATTER_TENSOR_COALESCED, outputs, inputs, opts);
  }

  WorkPtr alltoall_base(at::Tensor& output, at::Tensor& input, std::vector<int64_t>& output_rows,
                        std::vector<int64_t>& input_rows, const c10d::AllToAllOptions& opts) override {
    return exchange(OpType::ALLTOALL_BASE, {output}, {input}, split(output, output_rows), split(input, input_rows),
                    opts);
  }
  WorkPtr alltoall(TensorList& outputs, TensorList& inputs, const c10d::AllToAllOptions& opts) override {
    one_for_each_rank(outputs);
    one_for_each_rank(inputs);
    std::vector<int64_t> to, from;
    for (size_t i = 0; i < inputs.size(); ++i) {
      to.push_back(bytes_of(outputs[i]));
      from.push_back(bytes_of(inputs[i]));
    }
    return exchange(OpType::ALLTOALL, outputs, inputs, std::move(to), std::move(from), opts);
  }

  WorkPtr send(TensorList& tensors, int to, int tag) override {
    const at::Tensor tensor = ready(only(tensors, "tensor"));
    TensorList list{pull_bytes({tensor})};
    return start(OpType::SEND, {tensor}, {gloo_->send(list, to, tag)}, nullptr);
  }
  WorkPtr recv(TensorList& tensors, int from, int tag) override {
    const at::Tensor tensor = ready(only(tensors, "tensor"));
    TensorList list{host_flat(bytes_of(tensor))};
    const at::Tensor host = list.front();
    return start(OpType::RECV, {tensor}, {gloo_->recv(list, from, tag)}, [=] { push(tensor, host); });
  }
  WorkPtr recvAnysource(TensorList& tensors, int tag) override {
    const at::Tensor tensor = ready(only(tensors, "tensor"));
    TensorList list{host_flat(bytes_of(tensor))};
    const at::Tensor host = list.front();
    return start(OpType::RECVANYSOURCE, {tensor}, {gloo_->recvAnysource(list, tag)}, [=] { push(tensor, host); });
  }

  // As with other accelerators, what the device was given before is done after a barrier.
  WorkPtr barrier(const c10d::BarrierOptions& opts) override {
    if (tt_runtime_started()) {
      c10::impl::VirtualGuardImpl(kTpu).synchronizeDevice(static_cast<c10::DeviceIndex>(current_device()));
    }
    c10d::BarrierOptions plain;
    plain.timeout = opts.timeout;
    return start(OpType::BARRIER, {}, {gloo_->barrier(plain)}, nullptr);
  }
  void monitoredBarrier(const c10d::BarrierOptions& opts, bool wait_all_ranks) override {
    gloo_->monitoredBarrier(opts, wait_all_ranks);
  }

 private:
  size_t me() const { return static_cast<size_t>(getRank()); }
  void one_for_each_rank(const TensorList& list) const {
    TORCH_CHECK(list.size() == static_cast<size_t>(getSize()), "expected a tensor for each of ", getSize(),
                " ranks, got ", list.size());
  }

  // The tensor, once earlier collectives that write to its memory are done: programs may rely on a device's order.
  at::Tensor ready(const at::Tensor& tensor) {
    check_carried(tensor);
    const void* const memory = tensor.storage().unsafeGetStorageImpl();
    std::vector<c10::intrusive_ptr<TpuWork>> before;
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      std::erase_if(writers_, [](const Writer& writer) { return writer.work->isCompleted(); });
      for (const Writer& writer : writers_) {
        if (writer.memory == memory) {
          before.push_back(writer.work);
        }
      }
    }
    for (const auto& work : before) {
      work->settle();
    }
    return tensor;
  }
  TensorList ready(const TensorList& tensors) {
    for (const at::Tensor& tensor : tensors) {
      ready(tensor);
    }
    return tensors;
  }

  // Sends and receives do not go into the list of writers: two ranks that send one half of a buffer and receive the other would
  // wait for each other.
  WorkPtr start(OpType type, TensorList outputs, std::vector<WorkPtr> parts, std::function<void()> finish) {
    const auto work = c10::make_intrusive<TpuWork>(getRank(), type, outputs, std::move(finish));
    work->follow(std::move(parts));
    const std::lock_guard<std::mutex> lock(mutex_);
    if (c10d::isP2POp(type)) {
      std::erase_if(transfers_, [](const auto& weak) { return weak.expired(); });
      transfers_.emplace_back(work);
    } else {
      for (const at::Tensor& output : outputs) {
        writers_.push_back({output.storage().unsafeGetStorageImpl(), work});
      }
    }
    if (coalescing_) {
      coalesced_.push_back(work);
    }
    return work;
  }

  Reduction reduce_into(const TensorList& inputs, const ReduceOp& op, std::chrono::milliseconds timeout,
                        std::vector<WorkPtr>* parts) {
    Reduction reduction(inputs, op, getSize());
    if (reduction.flat.numel() > 0) {
      c10d::AllreduceOptions opts;
      opts.reduceOp = reduction.op();
      opts.timeout = timeout;
      TensorList list{reduction.flat};
      parts->push_back(gloo_->allreduce(list, opts));
    }
    return reduction;
  }

  WorkPtr reduce_all(OpType type, const TensorList& tensors, const c10d::AllreduceOptions& opts) {
    std::vector<WorkPtr> parts;
    std::vector<Reduction> reductions;
    for (const at::Tensor& tensor : ready(tensors)) {
      reductions.push_back(reduce_into({tensor}, opts.reduceOp, opts.timeout, &parts));
    }
    return start(type, tensors, std::move(parts), [tensors, reductions] {
      for (size_t i = 0; i < tensors.size(); ++i) {
        push(tensors[i], reductions[i].value());
      }
    });
  }

  WorkPtr gather_all(OpType type, const TensorList& outputs, const TensorList& inputs,
                     const c10d::AllgatherOptions& opts) {
    TORCH_CHECK(outputs.size() == inputs.size(), "expected ", inputs.size(), " outputs, got ", outputs.size());
    ready(outputs);
    ready(inputs);
    std::vector<WorkPtr> parts;
    TensorList hosts;
    for (size_t i = 0; i < inputs.size(); ++i) {
      TORCH_CHECK(bytes_of(outputs[i]) == bytes_of(inputs[i]) * getSize(), "expected an output of ",
                  inputs[i].numel() * getSize(), " elements, got ", outputs[i].numel());
      at::Tensor to = host_flat(bytes_of(outputs[i]));
      at::Tensor from = pull_bytes({inputs[i]});
      if (bytes_of(from) > 0) {
        parts.push_back(gloo_->_allgather_base(to, from, opts));
      }
      hosts.push_back(to);
    }
    return start(type, outputs, std::move(parts), [outputs, hosts] {
      for (size_t i = 0; i < outputs.size(); ++i) {
        push(outputs[i], hosts[i]);
      }
    });
  }

  WorkPtr scatter_reduced(OpType type, const TensorList& outputs, const TensorList& inputs,
                          const c10d::ReduceScatterOptions& opts) {
    TORCH_CHECK(outputs.size() == inputs.size(), "expected ", inputs.size(), " outputs, got ", outputs.size());
    ready(outputs);
    ready(inputs);
    std::vector<WorkPtr> parts;
    std::vector<Reduction> reductions;
    for (size_t i = 0; i < inputs.size(); ++i) {
      one_dtype({outputs[i], inputs[i]});
      TORCH_CHECK(outputs[i].numel() * getSize() == inputs[i].numel(), "expected an input of ",
                  outputs[i].numel() * getSize(), " elements, got ", inputs[i].numel());
      reductions.push_back(reduce_into({inputs[i]}, opts.reduceOp, opts.timeout, &parts));
    }
    const int64_t rank = getRank();
    return start(type, outputs, std::move(parts), [outputs, reductions, rank] {
      for (size_t i = 0; i < outputs.size(); ++i) {
        push(outputs[i], reductions[i].value(), rank * bytes_of(outputs[i]));
      }
    });
  }

  // Rows of the first dim for each rank (none given: equal parts) in bytes.
  std::vector<int64_t> split(const at::Tensor& tensor, const std::vector<int64_t>& rows) const {
    const int64_t total = tensor.dim() > 0 ? tensor.size(0) : 1;
    const int64_t row_bytes = total > 0 ? bytes_of(tensor) / total : 0;
    std::vector<int64_t> bytes;
    if (rows.empty()) {
      TORCH_CHECK(total % getSize() == 0, "expected a first dim that ", getSize(), " ranks divide, got ", total);
      bytes.assign(static_cast<size_t>(getSize()), total / getSize() * row_bytes);
      return bytes;
    }
    TORCH_CHECK(
        rows.size() == static_cast<size_t>(getSize()) && std::accumulate(rows.begin(), rows.end(), int64_t{0}) == total,
        "expected ", getSize(), " split sizes that add up to ", total, ", got ", rows);
    for (const int64_t count : rows) {
      bytes.push_back(count * row_bytes);
    }
    return bytes;
  }

  WorkPtr exchange(OpType type, const TensorList& outputs, const TensorList& inputs, std::vector<int64_t> to_bytes,
                   std::vector<int64_t> from_bytes, const c10d::AllToAllOptions& opts) {
    TensorList all = ready(outputs);
    for (const at::Tensor& input : ready(inputs)) {
      all.push_back(input);
    }
    one_dtype(all);
    at::Tensor to = host_flat(std::accumulate(to_bytes.begin(), to_bytes.end(), int64_t{0}));
    at::Tensor from = pull_bytes(inputs);
    std::vector<WorkPtr> parts{gloo_->alltoall_base(to, from, to_bytes, from_bytes, opts)};
    return start(type, outputs, std::move(parts), [outputs, to] { push_bytes(outputs, to); });
  }

  struct Writer {
    const void* memory;
    c10::intrusive_ptr<TpuWork> work;
  };

  c10::intrusive_ptr<c10d::Backend> gloo_;
  const c10::intrusive_ptr<Options> options_;
  std::mutex mutex_;
  std::vector<Writer> writers_;
  std::vector<c10::weak_intrusive_ptr<TpuWork>> transfers_;
  std::vector<WorkPtr> coalesced_;
  bool coalescing_ = false;
};

}  // namespace

PyObject* process_group(PyObject*, PyObject* args) {
  HANDLE_TH_ERRORS
  PyObject* gloo = nullptr;
  long long timeout = 0;
  if (PyArg_ParseTuple(args, "OL", &gloo, &timeout) == 0) {
    throw python_error();
  }
  auto inner = pybind11::cast<c10::intrusive_ptr<c10d::Backend>>(pybind11::handle(gloo));
  c10::intrusive_ptr<c10d::Backend> backend =
      c10::make_intrusive<TpuBackend>(std::move(inner), std::chrono::milliseconds(timeout));
  return pybind11::cast(std::move(backend)).release().ptr();
  END_HANDLE_TH_ERRORS
}

}  // namespace tt
