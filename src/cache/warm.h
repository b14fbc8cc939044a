// SPDX-License-Identifier: Apache-2.0
//
// Loading ahead: the programs a script asked for in its last run are loaded from disk on a thread of their own while the script is
// still busy with other things (building the model, moving weights), so that its first calls find them in memory.
//
// What a script asked for is kept on disk like a program, under a key made from the script's path. A list is a guess: the thread
// loads the first `FREE` of it unasked, and the rest only while the guesses before turn out to be wanted.
// Thread rule: thread-safe; tt_warm_start once a client.
#ifndef TT_CACHE_WARM_H
#define TT_CACHE_WARM_H

#include "base/hash.h"
#include "pjrt/pjrt.h"

// `script` NULL: the running process's, from its command line. Nothing happens where the disk cache is off.
void tt_warm_start(tt_client* client, const char* script, const tt_compile_options* options);
// A program was asked for, for the first time in this process.
void tt_warm_note(tt_digest key);
// Ends the loading and keeps the list for the next run. Also done when the process exits. Waits for one load at most.
void tt_warm_finish(void);

#endif  // TT_CACHE_WARM_H
