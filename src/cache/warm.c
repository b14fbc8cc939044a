// SPDX-License-Identifier: Apache-2.0
#include "cache/warm.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/knobs.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/thread.h"
#include "cache/disk.h"
#include "cache/program.h"

// FREE programs are loaded on trust; after that at least one in SHARE of those loaded must have been asked for.
enum { MOST = 2048, FREE = 256, SHARE = 4, SCRIPT_SIZE = 4096 };

static struct {
  tt_mutex lock;
  // All under the lock, but for what the thread reads while it runs.
  tt_client* client;
  tt_compile_options options;  // its texts are copies
  tt_digest list_key;
  tt_digest* planned;  // the last run's list
  int num_planned;
  tt_map* asked;  // this run's, and in order:
  tt_digest order[MOST];
  int num_asked;
  tt_pool* pool;
  int generation;  // fork generation of the start
  atomic_bool stop;
} warm = {.lock = TT_MUTEX_INIT};

// ---- which script -------------------------------------------------------------------------------------------------------

// The arguments up to the script: the first that is no option, or what follows -m or -c.
static void running_script(char out[SCRIPT_SIZE]) {
  FILE* f = fopen("/proc/self/cmdline", "r");
  char text[SCRIPT_SIZE];
  size_t size = f != NULL ? fread(text, 1, sizeof text - 1, f) : 0;
  if (f != NULL) {
    fclose(f);
  }
  text[size] = '\0';
  size_t used = 0;
  bool last = false;
  for (size_t at = 0, n = 0; at < size && used + 1 < SCRIPT_SIZE; at += strlen(text + at) + 1, ++n) {
    const char* word = text + at;
    used += (size_t)snprintf(out + used, SCRIPT_SIZE - used, "%s ", word);
    if (used >= SCRIPT_SIZE) {
      used = SCRIPT_SIZE - 1;
    }
    if (n > 0 && (last || word[0] != '-')) {
      break;
    }
    last = strcmp(word, "-m") == 0 || strcmp(word, "-c") == 0;
  }
  out[used] = '\0';
}

// ---- the thread ---------------------------------------------------------------------------------------------------------

static bool was_asked(tt_digest key) {
  tt_mutex_lock(&warm.lock);
  bool found = warm.asked != NULL && tt_map_find(warm.asked, &key.hi, 2, key.lo) != NULL;
  tt_mutex_unlock(&warm.lock);
  return found;
}

static void load_all(void* ctx) {
  (void)ctx;
  int wanted = 0;
  for (int i = 0; i < warm.num_planned && !atomic_load(&warm.stop); ++i) {
    if (i >= FREE) {
      wanted += was_asked(warm.planned[i - FREE]) ? 1 : 0;
      if (wanted * SHARE < i - FREE + 1) {
        TT_LOG("cache", "loading ahead ends after %d programs: few of them are asked for", i);
        break;
      }
    }
    tt_program_load_ahead(warm.client, warm.planned[i], &warm.options);
  }
}

// ---- start and end ------------------------------------------------------------------------------------------------------

static void read_list_locked(void) {
  void* bytes = NULL;
  size_t size = 0;
  if (tt_disk_read(warm.list_key, &bytes, &size) && size % sizeof(tt_digest) == 0 && size / sizeof(tt_digest) <= MOST) {
    warm.planned = bytes;
    warm.num_planned = (int)(size / sizeof(tt_digest));
  } else {
    free(bytes);
  }
}

static void clear_locked(void) {
  tt_client_release(warm.client);
  warm.client = NULL;
  free((void*)(uintptr_t)warm.options.xla_options);
  warm.options = (tt_compile_options){0};
  free(warm.planned);
  warm.planned = NULL;
  warm.num_planned = 0;
  if (warm.asked != NULL) {
    tt_map_destroy(warm.asked);
  }
  warm.asked = NULL;
  warm.num_asked = 0;
}

void tt_warm_start(tt_client* client, const char* script, const tt_compile_options* options) {
  if (tt_disk_folder() == NULL) {
    return;
  }
  tt_warm_finish();
  char name[SCRIPT_SIZE];
  if (script == NULL) {
    running_script(name);
    script = name;
  }
  tt_mutex_lock(&warm.lock);
  tt_client_retain(client);
  warm.client = client;
  warm.options = *options;
  warm.options.xla_options = options->xla_options != NULL ? tt_strdup(options->xla_options) : NULL;
  tt_strbuf text = {0};
  tt_strbuf_addf(&text, "programs of %s", script);
  warm.list_key = tt_program_key(client, text.text, options);
  tt_strbuf_free(&text);
  warm.asked = tt_map_create();
  warm.generation = tt_fork_generation();
  atomic_store(&warm.stop, false);
  read_list_locked();
  if (warm.num_planned > 0) {
    warm.pool = tt_pool_create(1, "tt-warm");
    tt_pool_submit(warm.pool, load_all, NULL);
  }
  tt_mutex_unlock(&warm.lock);
  static atomic_bool registered;
  if (!atomic_exchange(&registered, true)) {
    (void)atexit(tt_warm_finish);  // after the plugin was loaded, so before the plugin's own end
  }
}

void tt_warm_note(tt_digest key) {
  tt_mutex_lock(&warm.lock);
  if (warm.asked != NULL && warm.num_asked < MOST && tt_map_find(warm.asked, &key.hi, 2, key.lo) == NULL) {
    tt_map_insert(warm.asked, &key.hi, 2, key.lo, &warm);
    warm.order[warm.num_asked++] = key;
  }
  tt_mutex_unlock(&warm.lock);
}

void tt_warm_finish(void) {
  tt_mutex_lock(&warm.lock);
  tt_pool* pool = warm.pool;
  warm.pool = NULL;
  bool ours = warm.client != NULL && warm.generation == tt_fork_generation();
  tt_mutex_unlock(&warm.lock);
  if (!ours) {
    return;
  }
  atomic_store(&warm.stop, true);
  tt_pool_destroy(pool);
  tt_mutex_lock(&warm.lock);
  size_t size = (size_t)warm.num_asked * sizeof(tt_digest);
  bool same = warm.num_asked == warm.num_planned && memcmp(warm.order, warm.planned, size) == 0;
  if (warm.num_asked > 0 && !same) {
    tt_disk_write(warm.list_key, warm.order, size);
  }
  clear_locked();
  tt_mutex_unlock(&warm.lock);
}
