// SPDX-License-Identifier: Apache-2.0
//
// Errors. A fallible function returns a `tt_status`: an owned pointer, NULL when all is well. Whoever holds a
// status frees it (`tt_status_free`), passes it on (`TT_TRY`), or turns it into another language's exception.
//
// A status carries one of PJRT's codes, a text ("expected X, got Y", lower case, no full stop), the place where it
// was made and a chain of context added on the way up. Running out of host memory aborts, in one place (src/base);
// running out of device memory is a status.
//
// Thread rule: a status belongs to one holder at a time; `tt_status_clone` makes another.
#ifndef TT_STATUS_H
#define TT_STATUS_H

#include <stdarg.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TT_NODISCARD __attribute__((warn_unused_result))
#define TT_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))
#define TT_EXPORT __attribute__((visibility("default")))

// The codes are PJRT_Error_Code's (and absl's) numbers.
typedef enum tt_code {
  TT_OK = 0,
  TT_CANCELLED = 1,
  TT_UNKNOWN = 2,
  TT_INVALID_ARGUMENT = 3,
  TT_DEADLINE_EXCEEDED = 4,
  TT_NOT_FOUND = 5,
  TT_ALREADY_EXISTS = 6,
  TT_PERMISSION_DENIED = 7,
  TT_RESOURCE_EXHAUSTED = 8,
  TT_FAILED_PRECONDITION = 9,
  TT_ABORTED = 10,
  TT_OUT_OF_RANGE = 11,
  TT_UNIMPLEMENTED = 12,
  TT_INTERNAL = 13,
  TT_UNAVAILABLE = 14,
  TT_DATA_LOSS = 15,
  TT_UNAUTHENTICATED = 16,
} tt_code;

typedef struct tt_error* tt_status;

// Makes a status; `file` must outlive the process (use TT_STATUS or TT_FAIL).
TT_EXPORT TT_NODISCARD tt_status tt_status_make(tt_code code, const char* file, int line, const char* fmt, ...)
    TT_PRINTF(4, 5);
// Adds context in front of the text ("compiling add: ..."). Consumes and returns `status`; NULL stays NULL.
TT_EXPORT TT_NODISCARD tt_status tt_status_annotate(tt_status status, const char* fmt, ...) TT_PRINTF(2, 3);
// A second, independent copy; NULL gives NULL.
TT_EXPORT TT_NODISCARD tt_status tt_status_clone(tt_status status);
// Accepts NULL.
TT_EXPORT void tt_status_free(tt_status status);
TT_EXPORT tt_code tt_status_code(tt_status status);
// The whole text, context first; borrowed from `status`. "ok" for NULL.
TT_EXPORT const char* tt_status_text(tt_status status);
// "file.c:123", the place of birth; borrowed.
TT_EXPORT const char* tt_status_origin(tt_status status);
// "INVALID_ARGUMENT" and so on.
TT_EXPORT const char* tt_code_name(tt_code code);

#define TT_STATUS(code, ...) tt_status_make((code), __FILE__, __LINE__, __VA_ARGS__)
#define TT_FAIL(code, ...) return TT_STATUS((code), __VA_ARGS__)
#define TT_TRY(expr)                                   \
  do {                                                 \
    tt_status tt_try_status_ = (expr);                 \
    if (__builtin_expect(tt_try_status_ != NULL, 0)) { \
      return tt_try_status_;                           \
    }                                                  \
  } while (0)
#define TT_TRY_CTX(expr, ...)                                 \
  do {                                                        \
    tt_status tt_try_status_ = (expr);                        \
    if (__builtin_expect(tt_try_status_ != NULL, 0)) {        \
      return tt_status_annotate(tt_try_status_, __VA_ARGS__); \
    }                                                         \
  } while (0)

#ifdef __cplusplus
}
#endif
#endif  // TT_STATUS_H
