// SPDX-License-Identifier: Apache-2.0
//
// Lets go of Python's lock while in scope, if this thread holds it: for calls that may wait, or that may start the runtime
// (which asks Python for the plugin).
#pragma once

#include <Python.h>

namespace tt {

class NoGil {
 public:
  NoGil() : state_(Py_IsInitialized() != 0 && PyGILState_Check() != 0 ? PyEval_SaveThread() : nullptr) {}
  ~NoGil() {
    if (state_ != nullptr) {
      PyEval_RestoreThread(state_);
    }
  }
  NoGil(const NoGil&) = delete;
  NoGil& operator=(const NoGil&) = delete;

 private:
  PyThreadState* const state_;
};

}  // namespace tt
