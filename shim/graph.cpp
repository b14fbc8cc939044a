// SPDX-License-Identifier: Apache-2.0
//
// Compiled graphs: a Python callable over tensors whose calls are captured once and become one program, keyed like any other call. A call
// whose key is known runs without Python.
#include <torch/csrc/Exceptions.h>
#include <torch/csrc/autograd/python_variable.h>
#include <torch/csrc/utils/object_ptr.h>

#include <ATen/core/LegacyTypeDispatch.h>

#include <forward_list>

#include "gil.h"
#include "graph.h"
#include "shim.h"

namespace tt {

namespace {

constexpr const char* kCapsule = "torch_tpu.graph";

// What the callable returned besides tensors: by output, NULL where a tensor stands. Each plan of a graph points to its own.
struct Template {
  std::vector<PyObject*> constants;
};

struct Graph {
  tt_overload* overload = nullptr;
  PyObject* code = nullptr;
  std::forward_list<Template> templates;  // under Python's lock
};

void destroy(PyObject* capsule) {
  auto* graph = static_cast<Graph*>(PyCapsule_GetPointer(capsule, kCapsule));
  Py_XDECREF(graph->code);
  for (const Template& found : graph->templates) {
    for (PyObject* constant : found.constants) {
      Py_XDECREF(constant);
    }
  }
  delete graph;  // the overload stays: plans may name it
}

// The arguments of one call: tensors read, tensors written, integers.
class GraphArgs {
 public:
  GraphArgs(const Graph& graph, PyObject* reads, PyObject* writes, PyObject* ints) {
    num_reads_ = PyList_GET_SIZE(reads);
    auto total = static_cast<size_t>(num_reads_ + PyList_GET_SIZE(writes));
    tensors_.reserve(total);
    described_.reserve(total);
    add(reads);
    add(writes);
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(ints); ++i) {
      int64_t value = PyLong_AsLongLong(PyTuple_GET_ITEM(ints, i));
      if (value == -1 && PyErr_Occurred() != nullptr) {
        throw python_error();
      }
      ints_.push_back(value);
    }
    int device = current_device();
    for (const tt_tensor& t : described_) {
      if (t.storage != nullptr) {
        device = tt_storage_device(t.storage);
        break;
      }
    }
    auto reads_count = static_cast<int32_t>(num_reads_);
    args_[0].kind = args_[1].kind = TT_ARG_TENSORS;
    args_[0].count = reads_count;
    args_[0].tensors = described_.data();
    args_[1].count = static_cast<int32_t>(described_.size()) - reads_count;
    args_[1].tensors = described_.data() + num_reads_;
    args_[2].kind = TT_ARG_INTS;
    args_[2].count = static_cast<int32_t>(ints_.size());
    args_[2].ints = ints_.data();
    call.overload = graph.overload;
    call.num_args = 3;
    call.args = args_;
    call.device = device;
  }

  tt_call call{};
  const std::vector<at::Tensor>& tensors() const { return tensors_; }
  Py_ssize_t num_reads() const { return num_reads_; }

 private:
  void add(PyObject* list) {
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(list); ++i) {
      PyObject* item = PyList_GET_ITEM(list, i);
      TORCH_CHECK_TYPE(THPVariable_Check(item), "expected a tensor, got ", Py_TYPE(item)->tp_name);
      tensors_.push_back(THPVariable_Unpack(item));
      described_.emplace_back();
      describe(tensors_.back(), &described_.back());
    }
  }

  Py_ssize_t num_reads_ = 0;
  std::vector<at::Tensor> tensors_;
  std::vector<tt_tensor> described_;
  std::vector<int64_t> ints_;
  tt_argument args_[3]{};
};

PyObject* stand_ins(tt_capture* capture, const GraphArgs& args, bool written) {
  auto n = static_cast<Py_ssize_t>(args.tensors().size());
  Py_ssize_t from = written ? args.num_reads() : 0;
  Py_ssize_t to = written ? n : args.num_reads();
  THPObjectPtr list(PyList_New(to - from));
  for (Py_ssize_t i = from; i < to; ++i) {
    const at::Tensor& given = args.tensors()[static_cast<size_t>(i)];
    at::Tensor inner = given;
    if (given.device().type() == kTpu) {
      tt_storage* storage = nullptr;
      tt_meta meta;
      check(tt_capture_input(capture, static_cast<int>(i), &storage, &meta));
      inner = wrap(storage, meta);
    }
    PyList_SET_ITEM(list.get(), i - from, THPVariable_Wrap(inner));
  }
  return list.release();
}

// Runs the callable on stand-ins and makes the plan. The template of its outputs goes to `out`.
void capture(Graph* graph, GraphArgs& args, PyObject* ints, Template* out) {
  tt_capture* c = nullptr;
  check(tt_capture_begin(&args.call, &c));
  std::vector<at::Tensor> returned;
  std::vector<tt_tensor> described;
  try {
    at::AutoDispatchBelowADInplaceOrView below_autograd;
    THPObjectPtr reads(stand_ins(c, args, false));
    THPObjectPtr writes(stand_ins(c, args, true));
    THPObjectPtr result(PyObject_CallFunctionObjArgs(graph->code, reads.get(), writes.get(), ints, nullptr));
    if (!result) {
      throw python_error();
    }
    THPObjectPtr items(PySequence_Tuple(result.get()));
    if (!items) {
      throw python_error();
    }
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(items.get()); ++i) {
      PyObject* item = PyTuple_GET_ITEM(items.get(), i);
      if (THPVariable_Check(item)) {
        returned.push_back(THPVariable_Unpack(item));
        out->constants.push_back(nullptr);
      } else {
        out->constants.push_back(Py_NewRef(item));
      }
    }
    described.resize(returned.size());
    for (size_t k = 0; k < returned.size(); ++k) {
      describe(returned[k], &described[k]);
    }
  } catch (...) {
    tt_capture_abandon(c);
    throw;
  }
  NoGil no_gil;
  check(tt_capture_end(c, static_cast<int>(described.size()), described.data()));
}

PyObject* wrap_outputs(const Template& found, tt_outputs* outputs) {
  auto n = static_cast<Py_ssize_t>(found.constants.size());
  THPObjectPtr list(PyList_New(n));
  int next = 0;
  for (Py_ssize_t i = 0; i < n; ++i) {
    PyObject* constant = found.constants[static_cast<size_t>(i)];
    if (constant != nullptr) {
      PyList_SET_ITEM(list.get(), i, Py_NewRef(constant));
    } else {
      const tt_output& o = outputs->items[next++];
      PyList_SET_ITEM(list.get(), i, THPVariable_Wrap(wrap(o.storage, *o.meta)));
    }
  }
  tt_outputs_deinit(outputs);
  return list.release();
}

}  // namespace

PyObject* graph_create(PyObject*, PyObject* arguments) {
  HANDLE_TH_ERRORS
  const char* name = nullptr;
  const char* xla_options = nullptr;
  PyObject* code = nullptr;
  if (PyArg_ParseTuple(arguments, "sOs", &name, &code, &xla_options) == 0) {
    return nullptr;
  }
  auto graph = std::make_unique<Graph>();
  graph->overload = tt_overload_create(name, nullptr, 3, /*mutates=*/2, 0, nullptr);
  tt_overload_set_xla_options(graph->overload, xla_options);
  graph->code = Py_NewRef(code);
  return PyCapsule_New(graph.release(), kCapsule, destroy);
  END_HANDLE_TH_ERRORS
}

PyObject* graph_call(PyObject*, PyObject* const* arguments, Py_ssize_t count) {
  HANDLE_TH_ERRORS
  TORCH_CHECK_TYPE(
      count == 4 && PyList_Check(arguments[1]) && PyList_Check(arguments[2]) && PyTuple_Check(arguments[3]),
      "expected (graph, list, list, tuple)");
  auto* graph = static_cast<Graph*>(PyCapsule_GetPointer(arguments[0], kCapsule));
  if (graph == nullptr) {
    return nullptr;
  }
  GraphArgs args(*graph, arguments[1], arguments[2], arguments[3]);
  for (int attempt = 0; attempt < 4; ++attempt) {
    tt_outputs outputs;
    bool hit = false;
    {
      NoGil no_gil;
      set_precision();
      check(tt_call_run(&args.call, &outputs, &hit));
    }
    if (hit) {
      return wrap_outputs(*static_cast<const Template*>(tt_outputs_extra(&outputs)), &outputs);
    }
    graph->templates.emplace_front();
    args.call.extra = &graph->templates.front();
    args.call.free_extra = [](void*) {};  // the graph's
    capture(graph, args, arguments[3], &graph->templates.front());
  }
  TORCH_INTERNAL_ASSERT(false, "the plan just made is not found");
  END_HANDLE_TH_ERRORS
}

}  // namespace tt
