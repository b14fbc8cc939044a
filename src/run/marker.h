// SPDX-License-Identifier: Apache-2.0
#ifndef TT_RUN_MARKER_H
#define TT_RUN_MARKER_H

#include "run/device.h"

tt_marker* tt_marker_done_now(void);
// A marker for one event (taken), which also becomes an outstanding launch of the device.
TT_NODISCARD tt_status tt_marker_of_event_take(tt_device* device, tt_event* event, tt_marker** out_marker);

#endif  // TT_RUN_MARKER_H
