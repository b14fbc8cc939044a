// SPDX-License-Identifier: Apache-2.0
//
// Checks before a call's plan is looked up: on numbers that only change values, such as a distribution's parameters, which are no
// part of a call's key, and on an out= whose dtype the plan would take.
#include <cmath>
#include <limits>

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

void multinomial_out(Arguments a) {
  at::ScalarType out = a[4].toTensor().scalar_type();
  TORCH_CHECK(out == at::kLong, "multinomial expects Long tensor out, got: ", out);
}

// Unless the caller vouches for them, segments must be no less and no more than the dimension; only the device knows.
void segment_reduce(Arguments a) {
  if (a[2].isNone() || a[6].toBool() || !a[3].isNone() || tt_capture_current() != nullptr) {
    return;
  }
  const at::Tensor& lengths = a[2].toTensor();
  if (lengths.numel() == 0 || lengths.dim() > a[0].toTensor().dim()) {
    return;
  }
  TORCH_CHECK(lengths.min().item<int64_t>() >= 0, "lengths contains negative value!");
  TORCH_CHECK(lengths.sum(-1).eq(a[0].toTensor().size(lengths.dim() - 1)).all().item<bool>(),
              "segment_reduce(): Expected all rows of lengths along axis to sum to data.size(lengths.dim()-1) when "
              "!unsafe.");
}

struct Row {
  const char* name;
  const char* overload;
  Check check;
};
constexpr Row rows[] = {
    {"aten::uniform_",       "",      uniform        },
    {"aten::exponential_",   "",      exponential    },
    {"aten::cauchy_",        "",      cauchy         },
    {"aten::geometric_",     "",      geometric      },
    {"aten::log_normal_",    "",      log_normal     },
    {"aten::normal_",        "",      normal         },
    {"aten::bernoulli_",     "float", bernoulli      },
    {"aten::segment_reduce", "",      segment_reduce },
    {"aten::multinomial",    "out",   multinomial_out},
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
