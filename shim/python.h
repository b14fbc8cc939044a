// SPDX-License-Identifier: Apache-2.0
//
// Callbacks from C into Python (python.cpp): finding a plugin, naming the line that runs.
#pragma once

#include <Python.h>

namespace tt {

// Called with no argument when a plugin is needed and none is named: returns its path, or raises.
void set_finder(PyObject* callable);
// Installs the functions that name the running line and pass warnings on.
void install_callbacks();

}  // namespace tt
