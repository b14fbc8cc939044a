// SPDX-License-Identifier: Apache-2.0
//
// The cache of compiled programs: text in, executable out. In memory it holds a bounded number of programs, the least recently
// used leave first; two threads that ask for the same text compile it once. Behind it lies the disk (disk.h).
// Thread rule: thread-safe; blocks while compiling.
#ifndef TT_CACHE_PROGRAM_H
#define TT_CACHE_PROGRAM_H

#include "base/hash.h"
#include "pjrt/pjrt.h"

typedef struct tt_program_stats {
  int64_t compiled, loaded, requests, hits, compile_ns, load_ns, held;
} tt_program_stats;

// *out_exec comes with a reference of its own. `name` is for messages and dumps.
TT_NODISCARD tt_status tt_program_get(tt_client* client, const char* name, const char* text,
                                      const tt_compile_options* options, tt_exec** out_exec);
// What a program is kept under, in memory and on disk.
tt_digest tt_program_key(tt_client* client, const char* text, const tt_compile_options* options);
// Loads a program from disk into memory before it is asked for; nothing happens if it is there already or not on disk.
void tt_program_load_ahead(tt_client* client, tt_digest key, const tt_compile_options* options);
void tt_program_stats_get(tt_program_stats* out_stats);
// Forgets the programs held in memory (those in use live on with their users).
void tt_program_forget(void);

#endif  // TT_CACHE_PROGRAM_H
