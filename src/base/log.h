// SPDX-License-Identifier: Apache-2.0
//
// One line a record on stderr, by room: TT_LOG("cache", "wrote %s", path). Off unless TORCH_TPU_LOG names the room.
#ifndef TT_BASE_LOG_H
#define TT_BASE_LOG_H

#include <stdbool.h>

bool tt_log_on(const char* room);
void tt_log(const char* room, const char* fmt, ...) __attribute__((format(printf, 2, 3)));
// Warnings that a user must see; the Python side replaces the sink by warnings.warn. Default: stderr.
typedef void (*tt_warn_sink)(const char* text);
void tt_warn_set_sink(tt_warn_sink sink);
void tt_warn(const char* fmt, ...) __attribute__((format(printf, 1, 2)));

#define TT_LOG(room, ...) (tt_log_on(room) ? tt_log((room), __VA_ARGS__) : (void)0)

#endif  // TT_BASE_LOG_H
