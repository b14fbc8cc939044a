// SPDX-License-Identifier: Apache-2.0
#ifndef TT_RUN_STATS_H
#define TT_RUN_STATS_H

#include <stdint.h>

void tt_plans_forget(void);
void tt_families_forget(void);
void tt_fuse_forget(void);  // programs of traces; waits for compilations under way
int64_t tt_plans_held(void);

#endif  // TT_RUN_STATS_H
