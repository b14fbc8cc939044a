// SPDX-License-Identifier: Apache-2.0
#include "cache/disk.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/knobs.h"
#include "base/log.h"
#include "base/mem.h"

typedef struct header {
  char magic[8];
  uint32_t version, reserved;
  tt_digest key;
  uint64_t size;
  tt_digest checksum;
} header;

static const char magic[8] = "TTPROG\r\n";
enum { FORMAT = 1, PATH_SIZE = 4096, TRIM_EVERY = 64 };
static const tt_digest checksum_seed = {0x7474, 1};

static void file_path(const char* folder, tt_digest key, char out[PATH_SIZE]) {
  char hex[33];
  tt_digest_hex(key, hex);
  snprintf(out, PATH_SIZE, "%s/%s.ttp", folder, hex);
}

static bool read_all(int fd, void* bytes, size_t size) {
  char* at = bytes;
  while (size > 0) {
    ssize_t n = read(fd, at, size);
    if (n < 0 && errno == EINTR) {
      continue;
    }
    if (n <= 0) {
      return false;
    }
    at += n;
    size -= (size_t)n;
  }
  return true;
}

static bool write_all(int fd, const void* bytes, size_t size) {
  const char* at = bytes;
  while (size > 0) {
    ssize_t n = write(fd, at, size);
    if (n < 0 && errno == EINTR) {
      continue;
    }
    if (n <= 0) {
      return false;
    }
    at += n;
    size -= (size_t)n;
  }
  return true;
}

static bool read_file(int fd, tt_digest key, void** out_bytes, size_t* out_size) {
  header h;
  struct stat st;
  if (fstat(fd, &st) != 0 || !read_all(fd, &h, sizeof h) || memcmp(h.magic, magic, sizeof magic) != 0 ||
      h.version != FORMAT || !tt_digest_equal(h.key, key) || (uint64_t)st.st_size != sizeof h + h.size) {
    return false;
  }
  void* bytes = malloc(h.size > 0 ? h.size : 1);
  if (bytes == NULL) {
    return false;
  }
  if (!read_all(fd, bytes, h.size) || !tt_digest_equal(tt_digest_bytes(bytes, h.size, checksum_seed), h.checksum)) {
    free(bytes);
    return false;
  }
  futimens(fd, NULL);  // used now; a failure only makes it leave earlier
  *out_bytes = bytes;
  *out_size = h.size;
  return true;
}

bool tt_disk_read_at(const char* folder, tt_digest key, void** out_bytes, size_t* out_size) {
  char path[PATH_SIZE];
  file_path(folder, key, path);
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) {
    return false;
  }
  bool sound = read_file(fd, key, out_bytes, out_size);
  close(fd);
  if (!sound) {
    TT_LOG("cache", "ignoring damaged file %s", path);
  }
  return sound;
}

tt_status tt_disk_write_at(const char* folder, tt_digest key, const void* bytes, size_t size) {
  static _Atomic unsigned serial;
  char path[PATH_SIZE];
  char temporary[PATH_SIZE + 32];
  file_path(folder, key, path);
  snprintf(temporary, sizeof temporary, "%s.%d.%u.tmp", path, (int)getpid(), atomic_fetch_add(&serial, 1));
  int fd = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
  if (fd < 0) {
    TT_FAIL(TT_UNAVAILABLE, "cannot write %s: %s", temporary, strerror(errno));
  }
  header h;
  memset(&h, 0, sizeof h);
  memcpy(h.magic, magic, sizeof magic);
  h.version = FORMAT;
  h.key = key;
  h.size = size;
  h.checksum = tt_digest_bytes(bytes, size, checksum_seed);
  bool written = write_all(fd, &h, sizeof h) && write_all(fd, bytes, size);
  written = close(fd) == 0 && written;
  if (!written || rename(temporary, path) != 0) {
    int error = errno;
    unlink(temporary);
    TT_FAIL(TT_UNAVAILABLE, "cannot write %s: %s", path, strerror(error));
  }
  return NULL;
}

typedef struct entry {
  char name[64];
  int64_t bytes;
  struct timespec used;
} entry;

static int by_use(const void* a, const void* c) {
  const entry* x = a;
  const entry* y = c;
  if (x->used.tv_sec != y->used.tv_sec) {
    return x->used.tv_sec < y->used.tv_sec ? -1 : 1;
  }
  return x->used.tv_nsec < y->used.tv_nsec ? -1 : x->used.tv_nsec > y->used.tv_nsec;
}

typedef TT_VEC(entry) entries;

static tt_status list(const char* folder, entries* out) {
  DIR* dir = opendir(folder);
  if (dir == NULL) {
    TT_FAIL(TT_UNAVAILABLE, "cannot read %s: %s", folder, strerror(errno));
  }
  for (struct dirent* d = readdir(dir); d != NULL; d = readdir(dir)) {
    size_t length = strlen(d->d_name);
    struct stat st;
    if (length < 4 || length >= sizeof((entry*)0)->name || strcmp(d->d_name + length - 4, ".ttp") != 0 ||
        fstatat(dirfd(dir), d->d_name, &st, AT_SYMLINK_NOFOLLOW) != 0) {
      continue;
    }
    entry e = {.bytes = st.st_size, .used = st.st_mtim};
    memcpy(e.name, d->d_name, length + 1);
    TT_VEC_PUSH(out, e);
  }
  closedir(dir);
  return NULL;
}

tt_status tt_disk_usage_at(const char* folder, int64_t* out_files, int64_t* out_bytes) {
  entries found = {0};
  *out_files = *out_bytes = 0;
  TT_TRY(list(folder, &found));
  for (size_t i = 0; i < found.count; ++i) {
    *out_bytes += found.items[i].bytes;
  }
  *out_files = (int64_t)found.count;
  TT_VEC_FREE(&found);
  return NULL;
}

// What processes left behind that died while writing.
static void sweep(const char* folder) {
  enum { OLD_SECONDS = 3600 };
  DIR* dir = opendir(folder);
  time_t now = time(NULL);
  for (struct dirent* d = dir != NULL ? readdir(dir) : NULL; d != NULL; d = readdir(dir)) {
    size_t length = strlen(d->d_name);
    struct stat st;
    if (length > 4 && strcmp(d->d_name + length - 4, ".tmp") == 0 && strstr(d->d_name, ".ttp.") != NULL &&
        fstatat(dirfd(dir), d->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 && st.st_mtime < now - OLD_SECONDS) {
      (void)unlinkat(dirfd(dir), d->d_name, 0);
    }
  }
  if (dir != NULL) {
    closedir(dir);
  }
}

tt_status tt_disk_trim_at(const char* folder, int64_t limit) {
  entries found = {0};
  int64_t total = 0;
  sweep(folder);
  TT_TRY(list(folder, &found));
  for (size_t i = 0; i < found.count; ++i) {
    total += found.items[i].bytes;
  }
  // A tenth below the limit, so that the next write does not trim again.
  int64_t target = total > limit ? limit - limit / 10 : total;
  if (total > limit) {
    qsort(found.items, found.count, sizeof *found.items, by_use);
  }
  for (size_t i = 0; i < found.count && total > target; ++i) {
    char path[PATH_SIZE];
    snprintf(path, sizeof path, "%s/%s", folder, found.items[i].name);
    if (unlink(path) == 0) {
      total -= found.items[i].bytes;
    }
  }
  TT_VEC_FREE(&found);
  return NULL;
}

// ---- the user's folder --------------------------------------------------------------------------------------------------

static char folder_path[PATH_SIZE];
static bool folder_usable;
static pthread_once_t folder_once = PTHREAD_ONCE_INIT;
static _Atomic bool complained;

static void complain(const char* text) {
  if (!atomic_exchange(&complained, true)) {
    tt_warn("the tpu program cache is not written: %s; programs will be compiled again by the next process", text);
  }
}

static bool make_folders(char* path) {
  for (char* p = path + 1; *p != '\0'; ++p) {
    if (*p == '/') {
      *p = '\0';
      (void)mkdir(path, 0755);
      *p = '/';
    }
  }
  return mkdir(path, 0755) == 0 || errno == EEXIST;
}

static void choose_folder(void) {
  const char* chosen = tt_knobs()->cache_dir;
  const char* home = getenv("HOME");
  const char* xdg = getenv("XDG_CACHE_HOME");
  if (chosen != NULL && strcmp(chosen, "none") == 0) {
    return;
  }
  if (chosen != NULL && chosen[0] != '\0') {
    snprintf(folder_path, sizeof folder_path, "%s", chosen);
  } else if (xdg != NULL && xdg[0] != '\0') {
    snprintf(folder_path, sizeof folder_path, "%s/torch_tpu", xdg);
  } else {
    snprintf(folder_path, sizeof folder_path, "%s/.cache/torch_tpu", home != NULL ? home : "/tmp");
  }
  folder_usable = make_folders(folder_path);
  if (!folder_usable) {
    char text[PATH_SIZE + 64];
    snprintf(text, sizeof text, "cannot make %s: %s", folder_path, strerror(errno));
    complain(text);
  }
}

const char* tt_disk_folder(void) {
  pthread_once(&folder_once, choose_folder);
  return folder_usable ? folder_path : NULL;
}

bool tt_disk_read(tt_digest key, void** out_bytes, size_t* out_size) {
  const char* folder = tt_disk_folder();
  return folder != NULL && tt_disk_read_at(folder, key, out_bytes, out_size);
}

void tt_disk_write(tt_digest key, const void* bytes, size_t size) {
  static _Atomic unsigned writes;
  const char* folder = tt_disk_folder();
  if (folder == NULL) {
    return;
  }
  tt_status status = tt_disk_write_at(folder, key, bytes, size);
  if (status == NULL && atomic_fetch_add(&writes, 1) % TRIM_EVERY == 0) {
    status = tt_disk_trim_at(folder, tt_knobs()->cache_mib << 20);
  }
  if (status != NULL) {
    complain(tt_status_text(status));
    tt_status_free(status);
  }
}
