// SPDX-License-Identifier: Apache-2.0
//
// Files of the disk cache: written whole or not at all, and never believed when something about them is wrong.
#include "cache/disk.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "base/mem.h"
#include "run_support.h"

static const tt_digest key = {0x1234, 0x5678};
static const char payload[] = "a program of some length, long enough to be cut";

static char* path_of(const char* folder, tt_digest k) {
  char hex[33];
  tt_digest_hex(k, hex);
  tt_strbuf path = {0};
  tt_strbuf_addf(&path, "%s/%s.ttp", folder, hex);
  return tt_strbuf_take(&path);
}

static char* slurp(const char* path, size_t* out_size) {
  tt_strbuf text = {0};
  char piece[512];
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  for (ssize_t n = 0; fd >= 0 && (n = read(fd, piece, sizeof piece)) > 0;) {
    tt_strbuf_addn(&text, piece, (size_t)n);
  }
  (void)close(fd);
  *out_size = text.length;
  return tt_strbuf_take(&text);
}

static void spill(const char* path, const char* bytes, size_t size) {
  int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  EXPECT_TRUE(fd >= 0 && write(fd, bytes, size) == (ssize_t)size);
  (void)close(fd);
}

static bool sound_at(const char* folder, tt_digest k, const char* want, size_t want_size) {
  void* bytes = NULL;
  size_t size = 0;
  bool found = tt_disk_read_at(folder, k, &bytes, &size);
  if (found) {
    EXPECT_EQ_INT(size, want_size);
    EXPECT_TRUE(memcmp(bytes, want, want_size) == 0);
    free(bytes);
  }
  return found;
}
static bool sound(const char* folder) {
  return sound_at(folder, key, payload, sizeof payload);
}

static int files_in(const char* folder) {
  int n = 0;
  DIR* dir = opendir(folder);
  for (struct dirent* d = dir != NULL ? readdir(dir) : NULL; d != NULL; d = readdir(dir)) {
    n += d->d_name[0] != '.';
  }
  if (dir != NULL) {
    (void)closedir(dir);
  }
  return n;
}

static void drop_folder(char* folder) {
  remove_folder(folder);
  free(folder);
}

TEST(disk, what_was_written_is_read) {
  char* folder = temporary_folder();
  EXPECT_TRUE(!sound(folder));
  EXPECT_OK(tt_disk_write_at(folder, key, payload, sizeof payload));
  EXPECT_TRUE(sound(folder));
  EXPECT_EQ_INT(files_in(folder), 1);  // nothing temporary is left
  EXPECT_OK(tt_disk_write_at(folder, key, payload, sizeof payload));
  EXPECT_TRUE(sound(folder));
  drop_folder(folder);
}

TEST(disk, an_empty_payload_is_kept) {
  char* folder = temporary_folder();
  EXPECT_OK(tt_disk_write_at(folder, key, NULL, 0));
  EXPECT_TRUE(sound_at(folder, key, "", 0));
  drop_folder(folder);
}

TEST(disk, any_changed_byte_is_noticed_and_a_rewrite_mends_it) {
  char* folder = temporary_folder();
  char* path = path_of(folder, key);
  size_t size = 0;
  EXPECT_OK(tt_disk_write_at(folder, key, payload, sizeof payload));
  char* good = slurp(path, &size);
  enum { RESERVED_AT = 12, RESERVED_END = 16 };  // four bytes that say nothing yet
  for (size_t i = 0; i < size; ++i) {
    if (i >= RESERVED_AT && i < RESERVED_END) {
      continue;
    }
    good[i] ^= 1;
    spill(path, good, size);
    EXPECT_TRUE(!sound(folder));
    good[i] ^= 1;
  }
  EXPECT_OK(tt_disk_write_at(folder, key, payload, sizeof payload));
  EXPECT_TRUE(sound(folder));
  free(good);
  free(path);
  drop_folder(folder);
}

TEST(disk, a_truncated_or_longer_file_is_ignored) {
  char* folder = temporary_folder();
  char* path = path_of(folder, key);
  size_t size = 0;
  EXPECT_OK(tt_disk_write_at(folder, key, payload, sizeof payload));
  char* good = slurp(path, &size);
  for (size_t n = 0; n < size; ++n) {
    spill(path, good, n);
    EXPECT_TRUE(!sound(folder));
  }
  good = tt_realloc(good, size + 1);
  good[size] = 'x';
  spill(path, good, size + 1);
  EXPECT_TRUE(!sound(folder));
  free(good);
  free(path);
  drop_folder(folder);
}

TEST(disk, a_file_of_another_program_is_ignored) {
  static const tt_digest other = {0x1234, 0x5679};
  char* folder = temporary_folder();
  char* mine = path_of(folder, key);
  char* theirs = path_of(folder, other);
  EXPECT_OK(tt_disk_write_at(folder, other, payload, sizeof payload));
  EXPECT_TRUE(rename(theirs, mine) == 0);
  EXPECT_TRUE(!sound(folder));
  spill(mine, "#!/bin/sh\necho something else entirely\n", 39);
  EXPECT_TRUE(!sound(folder));
  (void)unlink(mine);
  EXPECT_TRUE(mkdir(mine, 0755) == 0);
  EXPECT_TRUE(!sound(folder));
  EXPECT_STATUS(tt_disk_write_at(folder, key, payload, sizeof payload), TT_UNAVAILABLE, mine);
  (void)rmdir(mine);
  EXPECT_EQ_INT(files_in(folder), 0);
  free(mine);
  free(theirs);
  drop_folder(folder);
}

TEST(disk, a_folder_that_is_not_there_is_an_error) {
  int64_t files = 0;
  int64_t bytes = 0;
  EXPECT_STATUS(tt_disk_write_at("/nowhere", key, payload, sizeof payload), TT_UNAVAILABLE, "cannot write /nowhere/");
  EXPECT_STATUS(tt_disk_usage_at("/nowhere", &files, &bytes), TT_UNAVAILABLE, "cannot read /nowhere");
  EXPECT_STATUS(tt_disk_trim_at("/nowhere", 0), TT_UNAVAILABLE, "cannot read /nowhere");
}

// Five files of a kilobyte, last used in the order of their keys.
static void write_five(const char* folder, const char* big, size_t size) {
  for (uint64_t i = 0; i < 5; ++i) {
    tt_digest k = {i, i};
    EXPECT_OK(tt_disk_write_at(folder, k, big, size));
    char* path = path_of(folder, k);
    struct timespec times[2] = {{.tv_sec = 1000 + (time_t)i}, {.tv_sec = 1000 + (time_t)i}};
    EXPECT_TRUE(utimensat(AT_FDCWD, path, times, 0) == 0);
    free(path);
  }
}

TEST(disk, a_folder_within_its_limit_keeps_its_files) {
  static char big[1000];
  char* folder = temporary_folder();
  int64_t files = 0;
  int64_t bytes = 0;
  write_five(folder, big, sizeof big);
  EXPECT_OK(tt_disk_usage_at(folder, &files, &bytes));
  EXPECT_EQ_INT(files, 5);
  EXPECT_TRUE(bytes > 5000 && bytes < 6000);
  EXPECT_OK(tt_disk_trim_at(folder, bytes));
  EXPECT_EQ_INT(files_in(folder), 5);
  drop_folder(folder);
}

TEST(disk, the_files_used_least_recently_go_first) {
  static char big[1000];
  char* folder = temporary_folder();
  write_five(folder, big, sizeof big);
  EXPECT_TRUE(sound_at(folder, (tt_digest){0, 0}, big, sizeof big));  // used again: now the newest
  EXPECT_OK(tt_disk_trim_at(folder, 2500));
  EXPECT_EQ_INT(files_in(folder), 2);
  EXPECT_TRUE(sound_at(folder, (tt_digest){0, 0}, big, sizeof big));
  EXPECT_TRUE(sound_at(folder, (tt_digest){4, 4}, big, sizeof big));
  EXPECT_OK(tt_disk_trim_at(folder, 0));
  EXPECT_EQ_INT(files_in(folder), 0);
  drop_folder(folder);
}

TEST(disk, others_files_are_left_alone) {
  char* folder = temporary_folder();
  tt_strbuf path = {0};
  tt_strbuf_addf(&path, "%s/notes.txt", folder);
  spill(path.text, "mine", 4);
  EXPECT_OK(tt_disk_trim_at(folder, 0));
  EXPECT_EQ_INT(files_in(folder), 1);
  tt_strbuf_free(&path);
  drop_folder(folder);
}

// What a process that died while writing left behind goes with the next trim, once it is old.
TEST(disk, half_written_files_of_the_dead_are_removed) {
  char* folder = temporary_folder();
  tt_strbuf old = {0};
  tt_strbuf young = {0};
  tt_strbuf_addf(&old, "%s/0123456789abcdef0123456789abcdef.ttp.77.0.tmp", folder);
  tt_strbuf_addf(&young, "%s/0123456789abcdef0123456789abcdef.ttp.78.0.tmp", folder);
  spill(old.text, "half", 4);
  spill(young.text, "half", 4);
  struct timespec times[2] = {{.tv_sec = 1000}, {.tv_sec = 1000}};
  EXPECT_TRUE(utimensat(AT_FDCWD, old.text, times, 0) == 0);
  EXPECT_OK(tt_disk_trim_at(folder, 1 << 20));
  EXPECT_TRUE(access(old.text, F_OK) != 0);
  EXPECT_TRUE(access(young.text, F_OK) == 0);  // somebody may be writing it
  tt_strbuf_free(&old);
  tt_strbuf_free(&young);
  drop_folder(folder);
}

// Writers and a reader at once: the reader sees all of a file or none.
TEST(disk, processes_share_a_folder) {
  char* folder = temporary_folder();
  int running = 2;
  bool seen = false;
  for (int w = 0; w < 2; ++w) {
    if (tt_test_fork() == 0) {
      for (int i = 0; i < 200; ++i) {
        tt_status status = tt_disk_write_at(folder, key, payload, sizeof payload);
        if (status != NULL) {
          _exit(1);
        }
      }
      _exit(0);
    }
  }
  while (running > 0) {
    bool found = sound(folder);
    EXPECT_TRUE(found || !seen);  // once there, always there
    seen = found;
    int status = 0;
    if (waitpid(-1, &status, WNOHANG) > 0) {
      EXPECT_EQ_INT(status, 0);
      --running;
    }
  }
  EXPECT_EQ_INT(files_in(folder), 1);
  drop_folder(folder);
}
