// SPDX-License-Identifier: Apache-2.0
//
// Precompiled for all files of shim/: the libtorch headers that most of them include. Files still name what they use.
#pragma once

#include <Python.h>

#include <ATen/EmptyTensor.h>
#include <ATen/core/Generator.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <c10/core/DeviceGuard.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <c10/util/Exception.h>
#include <torch/library.h>

#include <atomic>
#include <mutex>
#include <string>
#include <vector>
