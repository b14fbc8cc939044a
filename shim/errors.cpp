// SPDX-License-Identifier: Apache-2.0
//
// The only place where a status becomes an exception. Python sees: OUT_OF_RANGE as IndexError, UNIMPLEMENTED as
// NotImplementedError, RESOURCE_EXHAUSTED as torch.OutOfMemoryError, everything else as RuntimeError.
#include <c10/util/Exception.h>

#include <string>

#include "shim.h"

namespace tt {

void check(tt_status status) {
  if (C10_LIKELY(status == nullptr)) {
    return;
  }
  const tt_code code = tt_status_code(status);
  std::string text = tt_status_text(status);
  tt_status_free(status);
  const c10::SourceLocation where{__func__, __FILE__, __LINE__};
  switch (code) {
    case TT_OUT_OF_RANGE:
      throw c10::IndexError(where, std::move(text));
    case TT_UNIMPLEMENTED:
      throw c10::NotImplementedError(where, std::move(text));
    case TT_RESOURCE_EXHAUSTED:
      throw c10::OutOfMemoryError(where, std::move(text));
    default:
      throw c10::Error(where, std::move(text));
  }
}

}  // namespace tt
