// SPDX-License-Identifier: Apache-2.0
//
// Events over markers: what the device guard's record, query, wait and time mean here.
#include "event.h"

#include <c10/util/Exception.h>

#include "shim.h"

namespace tt {
namespace {

struct Event {
  tt_marker* marker = nullptr;
  int device = 0;
};

tt_marker* marker_now(int index) {
  tt_device* device = nullptr;
  check(tt_device_get(index, &device));
  tt_marker* marker = nullptr;
  check(tt_marker_create(device, &marker));
  return marker;
}

}  // namespace

void event_record(void** event, int device) {
  tt_marker* const marker = marker_now(device);
  if (*event == nullptr) {
    *event = new Event;
  }
  auto* const self = static_cast<Event*>(*event);
  tt_marker_destroy(self->marker);
  self->marker = marker;
  self->device = device;
}

void event_block(void* event, int device) {
  auto* const self = static_cast<Event*>(event);
  // One device has one order of launches; between devices the host waits.
  if (self != nullptr && self->device != device) {
    check(tt_marker_await(self->marker));
  }
}

bool event_query(void* event) {
  auto* const self = static_cast<Event*>(event);
  return self == nullptr || tt_marker_done(self->marker);
}

void event_synchronize(void* event) {
  if (auto* const self = static_cast<Event*>(event)) {
    check(tt_marker_await(self->marker));
  }
}

double event_elapsed_ms(void* start, void* end) {
  auto* const from = static_cast<Event*>(start);
  auto* const to = static_cast<Event*>(end);
  TORCH_CHECK(from != nullptr && to != nullptr, "Both events must be recorded before calculating elapsed time.");
  TORCH_CHECK(tt_marker_done(from->marker) && tt_marker_done(to->marker),
              "Both events must be completed before calculating elapsed time.");
  return static_cast<double>(tt_marker_time_ns(to->marker) - tt_marker_time_ns(from->marker)) / 1e6;
}

void event_destroy(void* event) noexcept {
  if (auto* const self = static_cast<Event*>(event)) {
    tt_marker_destroy(self->marker);
    delete self;
  }
}

bool device_idle(int device) {
  tt_marker* const marker = marker_now(device);
  const bool done = tt_marker_done(marker);
  tt_marker_destroy(marker);
  return done;
}

}  // namespace tt
