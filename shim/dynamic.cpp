// SPDX-License-Identifier: Apache-2.0
//
// Ops whose output size depends on data. Each is at most one program that counts, one read by the host, and programs of fixed
// size. They are composed of other ops and hold no state.
#include "dynamic.h"
#include <ATen/MemoryOverlap.h>

#include <ATen/Functions.h>
#include <ATen/native/IndexingUtils.h>
#include <ATen/native/Resize.h>
#include <torch/library.h>

namespace tt {

namespace {

using at::Tensor;

void need_data(const char* op) {
  TORCH_CHECK_NOT_IMPLEMENTED(tt_capture_current() == nullptr, op,
                              ": the size of its result depends on data, which a captured program does not have");
}

int64_t count_true(const Tensor& mask) {
  return at::sum(mask, at::kLong).item<int64_t>();
}

Tensor truth(const Tensor& self) {
  return self.scalar_type() == at::kBool ? self : at::ne(self, 0);
}

// Flat places of the true elements of a flat mask.
Tensor places(const Tensor& mask) {
  return at::nonzero_static(mask, count_true(mask)).select(1, 0);
}

// ---- nonzero, masked_select -----------------------------------------------------------------------------------------------

Tensor find_nonzero(const Tensor& self) {
  need_data("nonzero");
  Tensor mask = truth(self);
  return at::nonzero_static(mask, count_true(mask));
}

Tensor& into(Tensor& out, const Tensor& result) {
  TORCH_CHECK(out.device() == result.device(),
              "Expected all tensors to be on the same device, but found at least two devices, ", result.device(),
              " and ", out.device(), "!");
  TORCH_CHECK(out.scalar_type() == result.scalar_type(), "Expected object of scalar type ", result.scalar_type(),
              " as out, but got ", out.scalar_type());
  at::native::resize_output(out, result.sizes());
  return out.copy_(result);
}

Tensor& find_nonzero_out(const Tensor& self, Tensor& out) {
  TORCH_CHECK(out.scalar_type() == at::kLong,
              "nonzero: Expected out tensor to have scalar type Long but got scalar type", out.scalar_type());
  return into(out, find_nonzero(self));
}

Tensor select_masked(const Tensor& self, const Tensor& mask) {
  need_data("masked_select");
  TORCH_CHECK(mask.scalar_type() == at::kBool, "masked_select: expected BoolTensor for mask");
  auto wide = at::expand_outplace(mask, self, "masked_select");
  Tensor flat = std::get<0>(wide)->reshape({-1});
  return at::index_select(std::get<1>(wide)->reshape({-1}), 0, places(flat));
}

Tensor& masked_select_out(const Tensor& self, const Tensor& mask, Tensor& out) {
  at::assert_no_internal_overlap(out);
  at::assert_no_overlap(out, self);
  at::assert_no_overlap(out, mask);
  TORCH_CHECK(mask.scalar_type() == at::kBool, "masked_select: expected BoolTensor for mask");
  TORCH_CHECK(self.scalar_type() == out.scalar_type(),
              "masked_select(): self and result must have the same scalar type");
  return into(out, select_masked(self, mask));
}

// ---- unique ---------------------------------------------------------------------------------------------------------------

struct Runs {
  Tensor first;   // bool: element i differs from the one before
  Tensor starts;  // places of these
};

Runs runs_of(const Tensor& differs, int64_t n) {
  Tensor head = at::ones({n > 0 ? 1 : 0}, differs.options());
  Tensor first = at::cat({head, differs});
  return {first, places(first)};
}

Tensor run_lengths(const Runs& runs, int64_t n) {
  Tensor end = at::full({1}, n, runs.starts.options());
  return at::diff(at::cat({runs.starts, end}));
}

Tensor run_numbers(const Runs& runs) {
  return at::sub(at::cumsum(runs.first, 0, at::kLong), 1);
}

std::tuple<Tensor, Tensor, Tensor> unique_flat(const Tensor& self, bool sort, bool inverse, bool counts) {
  Tensor flat = self.reshape({-1});
  int64_t n = flat.numel();
  Tensor none = at::empty({0}, self.options().dtype(at::kLong));
  Tensor order;
  if (sort) {
    std::tie(flat, order) = at::sort(flat, /*stable=*/true, 0, false);
  }
  Runs runs = runs_of(
      n > 0 ? at::ne(flat.slice(0, 1), flat.slice(0, 0, n - 1)) : at::empty({0}, self.options().dtype(at::kBool)), n);
  Tensor where = none;
  if (inverse) {
    where = run_numbers(runs);
    if (sort) {
      where = at::scatter(at::empty_like(where), 0, order, where);
    }
    where = where.reshape(self.sizes());
  }
  return {at::index_select(flat, 0, runs.starts), where, counts ? run_lengths(runs, n) : none};
}

std::tuple<Tensor, Tensor, Tensor> unique2(const Tensor& self, bool, bool inverse, bool counts) {
  need_data("_unique2");
  return unique_flat(self, true, inverse, counts);
}

std::tuple<Tensor, Tensor> unique(const Tensor& self, bool, bool inverse) {
  need_data("_unique");
  auto [values, where, counts] = unique_flat(self, true, inverse, false);
  return {values, where};
}

std::tuple<Tensor, Tensor, Tensor> unique_rows(const Tensor& self, int64_t dim, bool sort, bool inverse, bool counts) {
  dim = c10::maybe_wrap_dim(dim, self.dim());
  int64_t n = self.size(dim);
  Tensor none = at::empty({0}, self.options().dtype(at::kLong));
  if (self.numel() == 0 && n == 0) {
    return {at::empty(self.sizes(), self.options()), none, at::empty({0}, none.options())};
  }
  // Rows side by side; sorting by the last column first, stably, sorts them as words.
  Tensor rows = self.moveaxis(dim, 0).reshape({n, -1});
  Tensor order = at::arange(n, none.options());
  for (int64_t c = rows.size(1) - 1; sort && c >= 0; --c) {
    Tensor column = at::index_select(rows.select(1, c), 0, order);
    order = at::index_select(order, 0, std::get<1>(at::sort(column, /*stable=*/true, 0, false)));
  }
  if (sort) {
    rows = at::index_select(rows, 0, order);
  }
  Runs runs = runs_of(at::ne(rows.slice(0, 1), rows.slice(0, 0, n - 1)).any(1), n);
  auto sizes = self.moveaxis(dim, 0).sizes().vec();
  sizes[0] = runs.starts.size(0);
  Tensor chosen = at::index_select(rows, 0, runs.starts).reshape(sizes).moveaxis(0, dim);
  Tensor where = none;
  if (inverse) {
    where = run_numbers(runs);
    if (sort) {
      where = at::scatter(at::empty_like(where), 0, order, where);
    }
  }
  return {chosen, where, counts ? run_lengths(runs, n) : none};
}

std::tuple<Tensor, Tensor, Tensor> unique_dim(const Tensor& self, int64_t dim, bool, bool inverse, bool counts) {
  need_data("unique_dim");
  auto sizes = self.sizes().vec();
  auto zeros = std::count(sizes.begin(), sizes.end(), 0);
  if (self.size(dim) == 0) {
    TORCH_CHECK(zeros == 1, "Number of zero sized dimensions is more than one, so unique cannot be applied ");
  } else {
    TORCH_CHECK(zeros == 0, "There are 0 sized dimensions, and they aren't selected, so unique cannot be applied");
  }
  return unique_rows(self, dim, true, inverse, counts);
}

std::tuple<Tensor, Tensor, Tensor> unique_dim_consecutive(const Tensor& self, int64_t dim, bool inverse, bool counts) {
  need_data("unique_dim_consecutive");
  return unique_rows(self, dim, false, inverse, counts);
}

std::tuple<Tensor, Tensor, Tensor> unique_consecutive(const Tensor& self, bool inverse, bool counts,
                                                      std::optional<int64_t> dim) {
  need_data("unique_consecutive");
  if (!dim.has_value() || (dim == 0 && self.dim() == 1)) {
    return unique_flat(self, false, inverse, counts);
  }
  return unique_rows(self, *dim, false, inverse, counts);
}

// ---- repeat_interleave ------------------------------------------------------------------------------------------------------

Tensor repeat_interleave(const Tensor& repeats, std::optional<int64_t> output_size) {
  need_data("repeat_interleave");
  TORCH_CHECK(repeats.dim() == 1, "repeat_interleave only accept 1D vector as repeat");
  TORCH_CHECK(repeats.scalar_type() == at::kLong || repeats.scalar_type() == at::kInt,
              "repeats has to be Long or Int tensor");
  if (repeats.size(0) == 0) {
    return at::empty_like(repeats);
  }
  Tensor ends = at::cumsum(repeats, 0, at::kLong);
  int64_t size;
  if (output_size.has_value()) {
    size = *output_size;
  } else {
    Tensor facts = at::stack({at::min(repeats).to(at::kLong), ends.select(0, -1)}).cpu();
    TORCH_CHECK(facts[0].item<int64_t>() >= 0, "repeats can not be negative");
    size = facts[1].item<int64_t>();
  }
  // One at each element's end, added up: how many elements have ended by then.
  Tensor steps = at::zeros({size + 1}, ends.options());
  steps = at::scatter_add(steps, 0, ends, at::ones_like(ends));
  return at::cumsum(steps, 0).slice(0, 0, size).to(repeats.scalar_type());
}

// ---- bincount ---------------------------------------------------------------------------------------------------------------

Tensor bincount(const Tensor& self, const std::optional<Tensor>& weights, int64_t minlength) {
  need_data("bincount");
  TORCH_CHECK(minlength >= 0, "minlength should be >= 0");
  if (self.dim() == 1 && self.numel() == 0) {
    return at::zeros({minlength}, self.options().dtype(at::kLong));
  }
  bool integral = c10::isIntegralType(self.scalar_type(), /*includeBool=*/false);
  TORCH_CHECK_NOT_IMPLEMENTED(integral || self.scalar_type() == at::kBool, "\"bincount_cpu\" not implemented for '",
                              c10::toString(self.scalar_type()), "'");
  TORCH_CHECK(self.dim() == 1, "bincount only supports 1-d non-negative integral inputs.");
  Tensor values = self.to(at::kLong);
  auto [low, high] = at::aminmax(values);
  Tensor facts = at::stack({low, high}).cpu();
  TORCH_CHECK(facts[0].item<int64_t>() >= 0, "bincount only supports 1-d non-negative integral inputs.");
  int64_t size = std::max(facts[1].item<int64_t>() + 1, minlength);
  if (!weights.has_value() || !weights->defined()) {
    return at::scatter_add(at::zeros({size}, values.options()), 0, values, at::ones_like(values));
  }
  TORCH_CHECK(weights->dim() == 1 && weights->size(0) == self.size(0),
              "weights should be 1-d and have the same length as input");
  Tensor share = weights->scalar_type() == at::kFloat ? *weights : weights->to(at::kDouble);
  return at::scatter_add(at::zeros({size}, share.options()), 0, values, share);
}

// ---- equal ------------------------------------------------------------------------------------------------------------------

bool equal(const Tensor& self, const Tensor& other) {
  need_data("equal");
  TORCH_CHECK(self.device() == other.device(), "Cannot compare two tensors on different devices. Got: ", self.device(),
              " and ", other.device());
  if (self.sizes() != other.sizes()) {
    return false;
  }
  return self.numel() == 0 || at::all(at::eq(self, other)).item<bool>();
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("bincount", bincount);
  m.impl("equal", equal);
  m.impl("nonzero", find_nonzero);
  m.impl("nonzero.out", find_nonzero_out);
  m.impl("masked_select", select_masked);
  m.impl("masked_select.out", masked_select_out);
  m.impl("_unique2", unique2);
  m.impl("_unique", unique);
  m.impl("unique_dim", unique_dim);
  m.impl("unique_dim_consecutive", unique_dim_consecutive);
  m.impl("unique_consecutive", unique_consecutive);
  m.impl("repeat_interleave.Tensor", repeat_interleave);
}

}  // namespace

// ---- masks among indices ----------------------------------------------------------------------------------------------------

// x[mask] = value with one value is a select: no count is needed, and the entry takes the mask as it is.
static bool fills_by_mask(const Overload& overload, const Tensor& self, const std::vector<Tensor>& indices,
                          const c10::IValue* values) {
  if (overload.name.find("index_put") == std::string::npos || values == nullptr || !values->isTensor() ||
      values->toTensor().numel() != 1) {
    return false;
  }
  int64_t place = -1;
  for (size_t d = 0; d < indices.size(); ++d) {
    if (indices[d].defined()) {
      if (place >= 0 || indices[d].scalar_type() != at::kBool) {
        return false;
      }
      place = static_cast<int64_t>(d);
    }
  }
  if (place < 0 || place + indices[static_cast<size_t>(place)].dim() > self.dim()) {
    return false;
  }
  const Tensor& mask = indices[static_cast<size_t>(place)];
  return mask.sizes() == self.sizes().slice(static_cast<size_t>(place), static_cast<size_t>(mask.dim()));
}

void expand_masks(const Overload& overload, torch::jit::Stack* stack) {
  size_t base = stack->size() - overload.args.size();
  c10::IValue& list = (*stack)[base + static_cast<size_t>(overload.indices)];
  const Tensor& self = (*stack)[base].toTensor();
  std::vector<Tensor> indices;
  bool masks = false, elsewhere = false;
  for (const c10::IValue& item : list.toListRef()) {
    indices.push_back(item.isTensor() ? item.toTensor() : Tensor());
    const Tensor& t = indices.back();
    masks |= t.defined() && (t.scalar_type() == at::kBool || t.scalar_type() == at::kByte);
    elsewhere |= t.defined() && t.dim() > 0 && t.device() != self.device();
  }
  if (!masks && !elsewhere) {
    return;
  }
  size_t after = static_cast<size_t>(overload.indices) + 1;
  const c10::IValue* values = after < overload.args.size() ? &(*stack)[base + after] : nullptr;
  if (masks && !elsewhere && fills_by_mask(overload, self, indices, values)) {
    return;
  }
  c10::List<std::optional<Tensor>> given;
  for (const Tensor& t : indices) {
    given.push_back(t.defined() ? std::make_optional(t) : std::nullopt);
  }
  c10::List<std::optional<Tensor>> expanded;
  for (const Tensor& t : at::native::expandTensors(self, given)) {
    expanded.push_back(!t.defined()                                 ? std::nullopt
                       : t.dim() > 0 && t.device() != self.device() ? std::make_optional(t.to(self.device()))
                                                                    : std::make_optional(t));
  }
  list = expanded;
}

// ---- writing through an expanded view -----------------------------------------------------------------------------------------

std::string spreading(const c10::FunctionSchema& schema) {
  const std::string& name = schema.name();
  return name == "aten::masked_fill_" || name == "aten::index_fill_"      ? "tensor[mask] = scalar"
         : name == "aten::index_put_" || name == "aten::_index_put_impl_" ? "tensor[indices] = tensor"
                                                                          : "";
}

// Several elements are one in memory. Of what is written to them the first change stays; what accumulates is summed up.
bool write_spread(const c10::OperatorHandle& op, const Overload& overload, torch::jit::Stack* stack) {
  size_t base = stack->size() - overload.args.size();
  Tensor self = (*stack)[base].toTensor();
  if (at::has_internal_overlap(self) != at::MemOverlap::Yes) {
    return false;
  }
  std::string name = overload.name.substr(6, overload.name.find('.', 6) - 6);
  TORCH_WARN(
      "Use of ", name == "_index_put_impl_" ? "index_put_" : name,
      " on expanded tensors is deprecated. Please clone() the tensor before performing this operation. This also "
      "applies to advanced indexing e.g. ",
      overload.spreading);
  bool sums = overload.indices >= 0 && (*stack)[base + 3].toBool() && self.scalar_type() != at::kBool;
  Tensor before = self.contiguous();
  Tensor after = sums ? at::zeros_like(before) : before.clone();
  (*stack)[base] = after;
  op.callBoxed(stack);
  Tensor changed = sums ? Tensor() : after.ne(before).logical_and_(after.eq(after).logical_or_(before.eq(before)));
  Tensor target = self;
  for (int64_t d = 0; d < self.dim(); ++d) {
    if (self.stride(d) != 0 || self.size(d) <= 1) {
      continue;
    }
    target = target.narrow(d, 0, 1);
    if (sums) {
      after = after.sum(d, /*keepdim=*/true, self.scalar_type());
    } else {
      after = after.gather(d, changed.to(at::kByte).argmax(d, /*keepdim=*/true));
      changed = changed.any(d, /*keepdim=*/true);
    }
  }
  sums ? target.add_(after) : target.copy_(after);
  stack->back() = self;
  return true;
}

}  // namespace tt
