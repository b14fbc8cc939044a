// SPDX-License-Identifier: Apache-2.0
//
// Text to executable, through the program cache, with this runtime's options.
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "base/knobs.h"
#include "cache/program.h"
#include "cache/warm.h"
#include "run/call.h"

// For the CPU plugins: the first halves compile time, the second makes max and min pass NaN on. A plugin that does not know the
// flags names one in its error, and is not asked again.
static const char cpu_options[] = "xla_cpu_use_fusion_emitters=false xla_cpu_enable_fast_min_max=false";
static _Atomic bool cpu_options_refused;

enum { OPTIONS_SIZE = 4096 };

// The user's options come last: they win.
static bool choose_options(tt_client* client, const char* extra, tt_compile_options* out, char text[OPTIONS_SIZE]) {
  const char* user = tt_knobs()->xla_options;
  bool tuned = tt_client_is_cpu(client) && !atomic_load(&cpu_options_refused);
  snprintf(text, OPTIONS_SIZE, "%s%s%s%s%s", tuned ? cpu_options : "", tuned ? " " : "", user != NULL ? user : "",
           extra != NULL ? " " : "", extra != NULL ? extra : "");
  *out = (tt_compile_options){.xla_options = text[0] != '\0' ? text : NULL};
  return tuned;
}

void tt_compile_warm(tt_client* client) {
  tt_compile_options options;
  char text[OPTIONS_SIZE];
  choose_options(client, NULL, &options, text);
  tt_warm_start(client, NULL, &options);
}

tt_status tt_compile(tt_device* device, const char* name, const char* text, const char* xla_options,
                     tt_exec** out_exec) {
  tt_compile_options options;
  char chosen[OPTIONS_SIZE];
  bool tuned = choose_options(device->client, xla_options, &options, chosen);
  tt_status status = tt_program_get(device->client, name, text, &options, out_exec);
  // A plugin's complaint about an option of the user's is the user's to see.
  bool ours = status != NULL && tuned &&
              (strstr(tt_status_text(status), "xla_cpu_use_fusion_emitters") != NULL ||
               strstr(tt_status_text(status), "xla_cpu_enable_fast_min_max") != NULL);
  if (ours) {
    tt_status_free(status);
    atomic_store(&cpu_options_refused, true);
    choose_options(device->client, xla_options, &options, chosen);
    status = tt_program_get(device->client, name, text, &options, out_exec);
  }
  return status;
}
