// SPDX-License-Identifier: Apache-2.0
//
// What the C side asks of Python: where is a plugin, which line is running, and whom to warn. Callers hold no lock of ours: these
// wait for Python's.
#include "python.h"

#include <c10/util/Exception.h>

#include <cstdio>
#include <cstring>
#include <string>

#include "shim.h"

namespace tt {
namespace {

PyObject* finder = nullptr;

// The pending Python exception as text; clears it.
std::string take_error(bool* out_missing) {
  PyObject *type = nullptr, *value = nullptr, *trace = nullptr;
  PyErr_Fetch(&type, &value, &trace);
  *out_missing = type != nullptr && PyErr_GivenExceptionMatches(type, PyExc_OSError) != 0;
  PyObject* const text = value != nullptr ? PyObject_Str(value) : nullptr;
  const char* const utf8 = text != nullptr ? PyUnicode_AsUTF8(text) : nullptr;
  std::string result = utf8 != nullptr ? utf8 : "unknown Python error";
  Py_XDECREF(text);
  Py_XDECREF(type);
  Py_XDECREF(value);
  Py_XDECREF(trace);
  PyErr_Clear();
  return result;
}

tt_status find_plugin(char** out_path) {
  if (Py_IsInitialized() == 0 || finder == nullptr) {
    return TT_STATUS(TT_NOT_FOUND, "no PJRT plugin was named; set TORCH_TPU_PLUGIN to the path of one");
  }
  const PyGILState_STATE gil = PyGILState_Ensure();
  tt_status status = nullptr;
  PyObject* const path = PyObject_CallNoArgs(finder);
  const char* const text = path != nullptr ? PyUnicode_AsUTF8(path) : nullptr;
  if (text != nullptr) {
    *out_path = strdup(text);
  } else {
    bool missing = false;
    const std::string error = take_error(&missing);
    status = TT_STATUS(missing ? TT_NOT_FOUND : TT_INTERNAL, "%s", error.c_str());
  }
  Py_XDECREF(path);
  PyGILState_Release(gil);
  return status;
}

bool is_library(const char* path) {
  return std::strstr(path, "/torch/") != nullptr || std::strstr(path, "/torch_tpu/") != nullptr || path[0] == '<';
}

// "train.py:12", the innermost frame that is neither PyTorch's nor ours; the innermost of all if there is no such frame.
void where(char* buffer, int size) {
  buffer[0] = '\0';
  // A thread that Python does not know has no Python line, and must not make Python's acquaintance here.
  if (Py_IsInitialized() == 0 || PyGILState_GetThisThreadState() == nullptr) {
    return;
  }
  const PyGILState_STATE gil = PyGILState_Ensure();
  PyFrameObject* frame = PyThreadState_GetFrame(PyThreadState_Get());
  bool first = true;
  while (frame != nullptr) {
    PyCodeObject* const code = PyFrame_GetCode(frame);
    const char* const path = PyUnicode_AsUTF8(code->co_filename);
    const bool theirs = path == nullptr || is_library(path);
    if (path != nullptr && (first || !theirs)) {
      const char* const slash = std::strrchr(path, '/');
      std::snprintf(buffer, static_cast<size_t>(size), "%s:%d", slash != nullptr ? slash + 1 : path,
                    PyFrame_GetLineNumber(frame));
    }
    Py_DECREF(code);
    first = false;
    PyFrameObject* const back = theirs ? PyFrame_GetBack(frame) : nullptr;
    Py_DECREF(frame);
    frame = back;
  }
  PyErr_Clear();
  PyGILState_Release(gil);
}

// PyTorch's bindings collect warnings and raise them as Python's once they hold its lock.
void warn(const char* text) {
  TORCH_WARN(text);
}

}  // namespace

void set_finder(PyObject* callable) {
  Py_XINCREF(callable);
  PyObject* const old = finder;
  finder = callable;
  Py_XDECREF(old);
  tt_runtime_set_finder(&find_plugin);
}

void install_callbacks() {
  tt_set_where(&where);
  tt_set_warn(&warn);
}

}  // namespace tt
