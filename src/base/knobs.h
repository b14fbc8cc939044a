// SPDX-License-Identifier: Apache-2.0
//
// Environment variables, one row each in knobs.def, read once at first use. Thread-safe.
#ifndef TT_BASE_KNOBS_H
#define TT_BASE_KNOBS_H

#include <stdbool.h>
#include <stdint.h>

typedef const char* tt_knob_STR;
typedef int64_t tt_knob_INT;
typedef bool tt_knob_BOOL;
typedef struct tt_knob_values {
#define K(field, name, type, value, help) tt_knob_##type field;
#include "base/knobs.def"
#undef K
} tt_knob_values;

const tt_knob_values* tt_knobs(void);
// Row `index` of the table, for docs and `info`: false past the end. `value` is what is in force, as text.
bool tt_knob_row(int index, const char** name, const char** type, const char** help, char* value, int size);

#endif  // TT_BASE_KNOBS_H
