// SPDX-License-Identifier: Apache-2.0
#include "cache/program.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/knobs.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/thread.h"
#include "cache/disk.h"
#include "cache/warm.h"

// An entry is made by the thread that compiles; others wait on `cond` until it is settled.
typedef struct entry {
  tt_digest key;
  tt_exec* exec;  // settled well
  bool settled;
  int waiting;
  uint64_t used;
} entry;

static struct {
  tt_mutex lock;
  tt_cond cond;
  tt_map* map;
  uint64_t clock;
  tt_program_stats stats;
} cache = {.lock = TT_MUTEX_INIT, .cond = TT_COND_INIT};

static uint64_t hash_of(tt_digest key) {
  return key.lo;
}

// ---- keys ---------------------------------------------------------------------------------------------------------------

// Machine code for a CPU is good for CPUs with the same features only.
static tt_digest host_features(void) {
  static tt_digest digest;
  static _Atomic bool known;
  if (atomic_load(&known)) {
    return digest;
  }
  tt_digest found = {0, 0};
  FILE* f = fopen("/proc/cpuinfo", "r");
  char line[8192];
  while (f != NULL && fgets(line, sizeof line, f) != NULL) {
    if (strncmp(line, "flags", 5) == 0 || strncmp(line, "Features", 8) == 0) {
      found = tt_digest_bytes(line, strlen(line), (tt_digest){1, 1});
      break;
    }
  }
  if (f != NULL) {
    fclose(f);
  }
  digest = found;
  atomic_store(&known, true);
  return digest;
}

tt_digest tt_program_key(tt_client* client, const char* text, const tt_compile_options* options) {
  enum { KEY_FORMAT = 1 };
  tt_plugin* plugin = tt_client_plugin(client);
  int major;
  int minor;
  tt_plugin_version(plugin, &major, &minor);
  struct stat st;
  int64_t plugin_bytes = stat(tt_plugin_path(plugin), &st) == 0 ? st.st_size : 0;
  char head[1024];
  int n = snprintf(head, sizeof head, "%d|%d.%d|%s|%s|%lld|%s|%d|%d,%d|", KEY_FORMAT, major, minor,
                   tt_client_platform(client), tt_client_platform_version(client), (long long)plugin_bytes,
                   tt_pjrt_device_kind(tt_client_device(client, 0)), tt_client_device_count(client),
                   options->num_replicas, options->num_partitions);
  tt_digest key =
      tt_digest_bytes(head, n > 0 ? (size_t)n : 0, tt_client_is_cpu(client) ? host_features() : (tt_digest){0, 0});
  if (options->xla_options != NULL) {
    key = tt_digest_bytes(options->xla_options, strlen(options->xla_options), key);
  }
  return tt_digest_bytes(text, strlen(text), key);
}

// ---- making a program ---------------------------------------------------------------------------------------------------

static void dump(const char* name, tt_digest key, const char* text) {
  if (tt_knobs()->dump_dir == NULL) {
    return;
  }
  char hex[33];
  char path[4096];
  tt_digest_hex(key, hex);
  snprintf(path, sizeof path, "%s/%s.%.12s.mlir", tt_knobs()->dump_dir, name, hex);
  FILE* f = fopen(path, "w");
  if (f != NULL) {
    fputs(text, f);
    fclose(f);
  }
}

static bool load(tt_client* client, tt_digest key, const tt_compile_options* options, tt_exec** out_exec) {
  void* bytes = NULL;
  size_t size = 0;
  int64_t start = tt_now_ns();
  if (!tt_disk_read(key, &bytes, &size)) {
    return false;
  }
  tt_status status = tt_exec_load(client, bytes, size, options, out_exec);
  free(bytes);
  if (status != NULL) {
    TT_LOG("cache", "a cached program does not load: %s", tt_status_text(status));
    tt_status_free(status);
    return false;
  }
  tt_mutex_lock(&cache.lock);
  cache.stats.loaded += 1;
  cache.stats.load_ns += tt_now_ns() - start;
  tt_mutex_unlock(&cache.lock);
  return true;
}

static tt_status make(tt_client* client, const char* name, const char* text, tt_digest key,
                      const tt_compile_options* options, tt_exec** out_exec) {
  dump(name, key, text);
  if (load(client, key, options, out_exec)) {
    return NULL;
  }
  int64_t start = tt_now_ns();
  TT_TRY_CTX(tt_exec_compile(client, text, strlen(text), options, out_exec), "compiling %s", name);
  int64_t took = tt_now_ns() - start;
  TT_LOG("cache", "compiled %s in %.1f ms", name, (double)took / 1e6);
  tt_mutex_lock(&cache.lock);
  cache.stats.compiled += 1;
  cache.stats.compile_ns += took;
  tt_mutex_unlock(&cache.lock);
  if (tt_disk_folder() != NULL) {
    void* bytes = NULL;
    size_t size = 0;
    tt_status status = tt_exec_serialize(*out_exec, &bytes, &size);
    if (status == NULL) {
      tt_disk_write(key, bytes, size);
    } else {
      TT_LOG("cache", "%s cannot be kept on disk: %s", name, tt_status_text(status));
      tt_status_free(status);
    }
    free(bytes);
  }
  return NULL;
}

// ---- the table ----------------------------------------------------------------------------------------------------------

static void oldest(void* value, void* ctx) {
  entry* e = value;
  entry** best = ctx;
  if (e->settled && e->waiting == 0 && (*best == NULL || e->used < (*best)->used)) {
    *best = e;
  }
}

static void drop_locked(entry* e) {
  tt_map_remove(cache.map, &e->key.hi, 2, hash_of(e->key));
  tt_exec_release(e->exec);
  free(e);
}

static void evict_locked(size_t limit) {
  while (tt_map_count(cache.map) > limit) {
    entry* victim = NULL;
    tt_map_each(cache.map, oldest, &victim);
    if (victim == NULL) {
      return;
    }
    drop_locked(victim);
  }
}

// The entry to be settled by the caller. Opens the table.
static entry* add_locked(tt_digest key) {
  entry* e = tt_calloc(1, sizeof *e);
  e->key = key;
  tt_map_insert(cache.map, &key.hi, 2, hash_of(key), e);
  return e;
}

// Takes the reference; NULL: it could not be made, and the entry goes unless somebody waits, who then takes care of it.
static void settle_locked(entry* e, tt_exec* exec) {
  e->settled = true;
  e->exec = exec;
  e->used = ++cache.clock;
  tt_cond_broadcast(&cache.cond);
  if (exec == NULL && e->waiting == 0) {
    drop_locked(e);
  }
  evict_locked((size_t)tt_knobs()->cache_programs);
}

static entry* find_locked(tt_digest key) {
  if (cache.map == NULL) {
    cache.map = tt_map_create();
  }
  return tt_map_find(cache.map, &key.hi, 2, hash_of(key));
}

tt_status tt_program_get(tt_client* client, const char* name, const char* text, const tt_compile_options* options,
                         tt_exec** out_exec) {
  tt_digest key = tt_program_key(client, text, options);
  *out_exec = NULL;
  tt_warm_note(key);
  tt_mutex_lock(&cache.lock);
  cache.stats.requests += 1;
  entry* e = find_locked(key);
  if (e != NULL) {
    e->waiting += 1;
    while (!e->settled) {
      tt_cond_wait(&cache.cond, &cache.lock);
    }
    e->waiting -= 1;
    e->used = ++cache.clock;
    *out_exec = e->exec;
    tt_exec_retain(e->exec);
    bool failed = e->exec == NULL;
    if (!failed) {
      cache.stats.hits += 1;
    } else if (e->waiting == 0) {
      drop_locked(e);
    }
    tt_mutex_unlock(&cache.lock);
    // The thread that compiled it failed: find out why ourselves.
    return failed ? make(client, name, text, key, options, out_exec) : NULL;
  }
  e = add_locked(key);
  tt_mutex_unlock(&cache.lock);

  tt_status status = make(client, name, text, key, options, out_exec);

  tt_mutex_lock(&cache.lock);
  tt_exec_retain(*out_exec);
  settle_locked(e, *out_exec);
  tt_mutex_unlock(&cache.lock);
  return status;
}

void tt_program_load_ahead(tt_client* client, tt_digest key, const tt_compile_options* options) {
  tt_mutex_lock(&cache.lock);
  entry* e = find_locked(key) == NULL ? add_locked(key) : NULL;
  tt_mutex_unlock(&cache.lock);
  if (e == NULL) {
    return;
  }
  tt_exec* exec = NULL;
  bool there = load(client, key, options, &exec);
  tt_mutex_lock(&cache.lock);
  settle_locked(e, there ? exec : NULL);
  tt_mutex_unlock(&cache.lock);
}

void tt_program_stats_get(tt_program_stats* out_stats) {
  tt_mutex_lock(&cache.lock);
  *out_stats = cache.stats;
  out_stats->held = cache.map != NULL ? (int64_t)tt_map_count(cache.map) : 0;
  tt_mutex_unlock(&cache.lock);
}

void tt_program_forget(void) {
  tt_mutex_lock(&cache.lock);
  if (cache.map != NULL) {
    evict_locked(0);
  }
  tt_mutex_unlock(&cache.lock);
}
