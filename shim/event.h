// SPDX-License-Identifier: Apache-2.0
//
// Events of the device guard (stream.cpp): a marker in a device's order of launches. An event that was never recorded is NULL:
// it is done, and waiting for it does nothing.
#pragma once

namespace tt {

void event_record(void** event, int device);
void event_block(void* event, int device);  // work of `device` launched from now on runs after the event
bool event_query(void* event);
void event_synchronize(void* event);
double event_elapsed_ms(void* start, void* end);  // both must be done
void event_destroy(void* event) noexcept;
bool device_idle(int device);

}  // namespace tt
