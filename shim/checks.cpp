// SPDX-License-Identifier: Apache-2.0
//
// What is looked at in each call, before its plan: numbers that only change values, such as a distribution's parameters (they are no part
// of a call's key), an out= whose dtype the plan would take, and arguments that PyTorch resizes.
#include <ATen/native/DistributionTemplates.h>
#include <ATen/native/TensorFactories.h>
#include <ATen/ops/_linalg_check_errors.h>
#include <ATen/ops/empty.h>

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

// PyTorch's checks of random_'s range stand before its kernel, which is not reached for a tensor without elements.
template <typename Generator>
struct NoKernel {
  void operator()(at::TensorIteratorBase&, uint64_t, int64_t, std::optional<at::Generator>) {}
  void operator()(at::TensorIteratorBase&, std::optional<at::Generator>) {}
};
void random_range(const at::Tensor& self, int64_t from, std::optional<int64_t> to) {
  at::Tensor empty = at::empty({0}, at::TensorOptions().dtype(self.scalar_type()));
  at::native::templates::random_from_to_impl<NoKernel, at::Generator>(empty, from, to, std::nullopt);
}
void random_from(Arguments a) {
  random_range(a[0].toTensor(), a[1].toInt(), a[2].isNone() ? std::nullopt : std::make_optional(a[2].toInt()));
}
void random_to(Arguments a) {
  random_range(a[0].toTensor(), 0, a[1].toInt());
}
void randperm(Arguments a) {
  int64_t n = a[0].toInt();
  TORCH_CHECK(n >= 0, "n must be non-negative, got", n);
  auto options = at::TensorOptions().dtype(a[2].toTensor().scalar_type());
  at::native::check_supported_max_int_with_precision(n, at::empty({0}, options));
}

bool is_one_mask(const c10::IValue& indices) {
  int defined = 0, masks = 0;
  for (const c10::IValue& item : indices.toListRef()) {
    if (item.isTensor() && item.toTensor().defined()) {
      auto type = item.toTensor().scalar_type();
      defined += 1;
      masks += type == at::kBool || type == at::kByte;
    }
  }
  return defined == 1 && masks == 1;
}

// Elements are written as they are. One that fills the places of a mask is converted, and the kernel that does so is another.
void index_put(Arguments a) {
  const at::Tensor& self = a[0].toTensor();
  const at::Tensor& values = a[2].toTensor();
  if (self.scalar_type() == values.scalar_type() || (!a[3].toBool() && is_one_mask(a[1]) && values.numel() == 1)) {
    return;
  }
  TORCH_CHECK(false, "Index put requires the source and destination dtypes match, got ", self.scalar_type(),
              " for the destination and ", values.scalar_type(), " for the source.");
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
    {"aten::uniform_",                        "",              uniform        },
    {"aten::exponential_",                    "",              exponential    },
    {"aten::cauchy_",                         "",              cauchy         },
    {"aten::geometric_",                      "",              geometric      },
    {"aten::log_normal_",                     "",              log_normal     },
    {"aten::normal_",                         "",              normal         },
    {"aten::bernoulli_",                      "float",         bernoulli      },
    {"aten::random_",                         "from",          random_from    },
    {"aten::random_",                         "to",            random_to      },
    {"aten::randperm",                        "generator_out", randperm       },
    {"aten::index_put",                       "",              index_put      },
    {"aten::index_put_",                      "",              index_put      },
    {"aten::_index_put_impl_",                "",              index_put      },
    {"aten::_fused_moving_avg_obs_fq_helper", "",              observer       },
    {"aten::segment_reduce",                  "",              segment_reduce },
    {"aten::multinomial",                     "out",           multinomial_out},
};

}  // namespace

void check_info(const Overload& overload, const at::Tensor& matrices, const at::Tensor& info) {
  std::string name = overload.name.substr(6, overload.name.find('.', 6) - 6);
  bool composed = name == "_linalg_solve_ex" || name == "linalg_lu_factor_ex";
  name = "linalg." + name.substr(name.find("linalg_") + 7);
  at::_linalg_check_errors(info, composed ? "torch." + name : name, matrices.dim() == 2);
}

Check find_check(const c10::OperatorName& name) {
  for (const Row& row : rows) {
    if (name.name == row.name && name.overload_name == row.overload) {
      return row.check;
    }
  }
  return nullptr;
}

}  // namespace tt
