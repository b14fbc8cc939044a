// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <Python.h>

namespace tt {

// (name, callable) -> graph. The callable takes (tensors read, tensors written, integers) and returns a sequence.
PyObject* graph_create(PyObject*, PyObject* arguments);
// (graph, list of tensors read, list of tensors written, tuple of integers) -> list. FASTCALL.
PyObject* graph_call(PyObject*, PyObject* const* arguments, Py_ssize_t count);

}  // namespace tt
