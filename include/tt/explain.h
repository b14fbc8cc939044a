// SPDX-License-Identifier: Apache-2.0
//
// Explanations: between begin and end the runtime notes, in plain words, which calls and traces were new and what had changed since the
// nearest known one, where fused mode ran what it had recorded and why, and what ran on the CPU.
// Thread-safe; begins nest. What happens on all threads is noted.
#ifndef TT_EXPLAIN_H
#define TT_EXPLAIN_H

#include "tt/status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum tt_explain_kind { TT_EXPLAIN_CUT, TT_EXPLAIN_NEW, TT_EXPLAIN_CPU } tt_explain_kind;

// Returns a mark for tt_explain_end.
TT_EXPORT int64_t tt_explain_begin(void);
// Gives what was noted since, oldest first; `where` is "file.py:12" or "".
TT_EXPORT void tt_explain_end(int64_t mark,
                              void (*each)(tt_explain_kind kind, const char* where, const char* text, void* ctx),
                              void* ctx);
TT_EXPORT bool tt_explain_is_on(void);
TT_EXPORT void tt_explain_note(tt_explain_kind kind, const char* where, const char* text);
// About the line of Python that runs; the caller holds none of our locks.
TT_EXPORT void tt_explain_note_here(tt_explain_kind kind, const char* text);
// As tt_flush, for a reason that an explanation then gives.
TT_EXPORT TT_NODISCARD tt_status tt_flush_because(const char* why);

#ifdef __cplusplus
}
#endif
#endif  // TT_EXPLAIN_H
