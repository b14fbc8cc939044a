// SPDX-License-Identifier: Apache-2.0
//
// The one way in which this room calls a plugin: TT_PJRT_CALL fills struct_size, refuses functions that lie beyond the
// plugin's PJRT_Api, and turns a PJRT_Error into a status that names the function.
#ifndef TT_PJRT_CALL_H
#define TT_PJRT_CALL_H

#include <pjrt_c_api.h>
#include <stddef.h>

#include "tt/status.h"

#define TT_PJRT_HAS(api, fn) ((api)->struct_size >= offsetof(PJRT_Api, fn) + sizeof((api)->fn) && (api)->fn != NULL)

// `args` points to a zero-initialised fn##_Args. The value is a tt_status.
#define TT_PJRT_CALL(api, fn, args)                                                                                  \
  ((args)->struct_size = fn##_Args_STRUCT_SIZE, __builtin_expect(TT_PJRT_HAS((api), fn), 1)                          \
                                                    ? tt_pjrt_check((api), (api)->fn(args), #fn, __FILE__, __LINE__) \
                                                    : tt_pjrt_missing((api), #fn, __FILE__, __LINE__))

tt_status tt_pjrt_missing(const PJRT_Api* api, const char* function, const char* file, int line);
// Consumes `error`, which is not NULL.
tt_status tt_pjrt_error(const PJRT_Api* api, PJRT_Error* error, const char* function, const char* file, int line);

static inline tt_status tt_pjrt_check(const PJRT_Api* api, PJRT_Error* error, const char* function, const char* file,
                                      int line) {
  return __builtin_expect(error == NULL, 1) ? NULL : tt_pjrt_error(api, error, function, file, line);
}

#endif  // TT_PJRT_CALL_H
