// SPDX-License-Identifier: Apache-2.0
//
// What is looked at in each call, before its plan: numbers that only change values, such as a distribution's parameters (they are no part
// of a call's key), and arguments that PyTorch resizes.
#include <cmath>
#include <limits>

#include <ATen/core/Tensor.h>
#include <ATen/ops/fill.h>
#include <ATen/ops/resize.h>

#include "boxed.h"

namespace tt {

namespace {

using Arguments = c10::ArrayRef<c10::IValue>;

double number(const c10::IValue& value) {
  return value.toScalar().toDouble();
}

void uniform(Arguments a) {
  double from = number(a[1]), to = number(a[2]);
  TORCH_CHECK(from <= to, "uniform_ expects to return a [from, to) range, but found from=", from, " > to=", to);
  TORCH_CHECK(to - from <= std::numeric_limits<double>::max(), "uniform_ expects to-from <= std::numeric_limits<",
              a[0].toTensor().scalar_type(), ">::max(), but found to=", to, " and from=", from,
              " which result in to-from to exceed the limit");
}
void exponential(Arguments a) {
  TORCH_CHECK(number(a[1]) > 0, "exponential_ expects lambda > 0.0, but found lambda=", number(a[1]));
}
void cauchy(Arguments a) {
  TORCH_CHECK(number(a[2]) > 0, "cauchy_ expects sigma > 0.0, but found sigma=", number(a[2]));
}
void geometric(Arguments a) {
  double p = number(a[1]);
  TORCH_CHECK(p > 0 && p < 1, "geometric_ expects p to be in (0, 1), but got p=", p);
}
void log_normal(Arguments a) {
  TORCH_CHECK(number(a[2]) > 0, "log_normal_ expects std > 0.0, but found std=", number(a[2]));
}
void normal(Arguments a) {
  TORCH_CHECK(number(a[2]) >= 0, "normal expects std >= 0.0, but found std ", number(a[2]));
}
void bernoulli(Arguments a) {
  double p = number(a[1]);
  TORCH_CHECK(p >= 0 && p <= 1, "bernoulli_ expects p to be in [0, 1], but got p=", p);
}

// The observer may start with empty ranges, which take on one element a channel.
void observer(Arguments a) {
  if (!a[11].toBool()) {
    return;
  }
  const at::Tensor& self = a[0].toTensor();
  TORCH_CHECK(a[10].toInt() == 0,
              "Per-channel FakeQuant in fused_moving_avg_obs_fake_quant is only supported on axis == 0");
  int64_t channels = self.dim() > 0 ? self.size(0) : 1;
  double start[] = {std::numeric_limits<double>::infinity(), -std::numeric_limits<double>::infinity(), 1, 0};
  for (size_t k = 0; k < 4; ++k) {
    at::Tensor t = a[3 + k].toTensor();
    if (k < 2 ? t.numel() == 0 : t.numel() != channels) {
      t.resize_({channels}).fill_(start[k]);
    }
  }
}

struct Row {
  const char* name;
  const char* overload;
  Check check;
};
constexpr Row rows[] = {
    {"aten::uniform_",                        "",      uniform    },
    {"aten::exponential_",                    "",      exponential},
    {"aten::cauchy_",                         "",      cauchy     },
    {"aten::geometric_",                      "",      geometric  },
    {"aten::log_normal_",                     "",      log_normal },
    {"aten::normal_",                         "",      normal     },
    {"aten::bernoulli_",                      "float", bernoulli  },
    {"aten::_fused_moving_avg_obs_fq_helper", "",      observer   },
};

}  // namespace

Check find_check(const c10::OperatorName& name) {
  for (const Row& row : rows) {
    if (name.name == row.name && name.overload_name == row.overload) {
      return row.check;
    }
  }
  return nullptr;
}

}  // namespace tt
