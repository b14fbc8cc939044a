// SPDX-License-Identifier: Apache-2.0
//
// A call's key in words: what it is made of, and what differs between two.
#ifndef TT_RUN_KEY_TEXT_H
#define TT_RUN_KEY_TEXT_H

#include "run/call.h"

typedef struct tt_key_field {
  char name[48];   // "shape of argument 0"
  char text[112];  // "[3,4]"
} tt_key_field;
typedef TT_VEC(tt_key_field) tt_key_fields;

// Appends the fields of a plan's key.
void tt_key_read(const tt_plan* plan, tt_key_fields* out);
// How many fields differ; with `out` also says which: "shape of argument 0: [3,4] before, [5,4] now; ...".
int tt_key_compare(const tt_key_fields* before, const tt_key_fields* now, tt_strbuf* out);

#endif  // TT_RUN_KEY_TEXT_H
