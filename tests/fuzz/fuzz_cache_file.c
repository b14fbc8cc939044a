// SPDX-License-Identifier: Apache-2.0
//
// Files in the cache folder may hold anything. An input is a file's content; whatever it is, reading it must give the payload
// that some writer wrote under this key, or nothing, and a write after it must mend it.
//
// With clang: -fsanitize=fuzzer -DTT_LIBFUZZER. Without, this program replays a corpus: seeds made here, and thousands of
// mutations of them by a fixed generator, so that each run is the same.
#define _GNU_SOURCE 1
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/hash.h"
#include "base/mem.h"
#include "cache/disk.h"

static const tt_digest key = {0x0123456789abcdef, 0xfedcba9876543210};
static char folder[64];
static char path[160];

static void prepare(void) {
  const char* root = getenv("TMPDIR");
  if (folder[0] == '\0') {
    char hex[33];
    tt_digest_hex(key, hex);
    (void)snprintf(folder, sizeof folder, "%.40s/tt_fuzz.XXXXXX", root != NULL && *root != '\0' ? root : "/tmp");
    TT_CHECK(mkdtemp(folder) != NULL);
    (void)snprintf(path, sizeof path, "%s/%s.ttp", folder, hex);
  }
}

static void spill(const unsigned char* bytes, size_t size) {
  int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  TT_CHECK(fd >= 0);
  TT_CHECK(write(fd, bytes, size) == (ssize_t)size);
  (void)close(fd);
}

// True if a sound file with exactly this payload is there.
static bool reads_as(const void* want, size_t want_size) {
  void* bytes = NULL;
  size_t size = 0;
  bool sound = tt_disk_read_at(folder, key, &bytes, &size);
  bool same = sound && size == want_size && memcmp(bytes, want, size) == 0;
  free(sound ? bytes : NULL);
  return same;
}

static const char mended[] = "what a later process wrote";

// Counts the inputs that were taken for sound files.
static int accepted;

static void one_input(const unsigned char* data, size_t size) {
  void* bytes = NULL;
  size_t payload = 0;
  prepare();
  spill(data, size);
  if (tt_disk_read_at(folder, key, &bytes, &payload)) {
    // Sound: then the payload is the end of the file, byte for byte, and its own checksum.
    TT_CHECK(payload <= size);
    TT_CHECK(memcmp(bytes, data + (size - payload), payload) == 0);
    free(bytes);
    ++accepted;
  }
  tt_status status = tt_disk_write_at(folder, key, mended, sizeof mended);
  TT_CHECK(status == NULL);
  TT_CHECK(reads_as(mended, sizeof mended));
  int64_t files = 0;
  int64_t total = 0;
  TT_CHECK(tt_disk_usage_at(folder, &files, &total) == NULL);
  TT_CHECK(files == 1);
}

#ifdef TT_LIBFUZZER
int LLVMFuzzerTestOneInput(const unsigned char* data, size_t size);
int LLVMFuzzerTestOneInput(const unsigned char* data, size_t size) {
  one_input(data, size);
  return 0;
}
#else

static uint64_t state = UINT64_C(0x9E3779B97F4A7C15);
static uint64_t next(void) {
  state ^= state << 13;
  state ^= state >> 7;
  state ^= state << 17;
  return state;
}

enum { ROOM = 4096 };

typedef struct input {
  unsigned char bytes[ROOM];
  size_t size;
} input;

// A sound file with a payload of n bytes.
static input sound_file(size_t n) {
  static unsigned char payload[ROOM];
  input in = {.size = 0};
  for (size_t i = 0; i < n; ++i) {
    payload[i] = (unsigned char)next();
  }
  TT_CHECK(tt_disk_write_at(folder, key, payload, n) == NULL);
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  ssize_t got = read(fd, in.bytes, sizeof in.bytes);
  TT_CHECK(got > 0);
  in.size = (size_t)got;
  (void)close(fd);
  return in;
}

// Numbers that tend to break size computations.
static const uint64_t nasty[] = {
    0, 1, 0x7f, 0xff, 0x7fffffff, 0xffffffff, INT64_MAX, UINT64_MAX, UINT64_MAX - 55, UINT64_MAX - 56};

static void mutate(input* in) {
  size_t at = in->size > 0 ? next() % in->size : 0;
  switch (next() % 6) {
    case 0:
      in->bytes[at] ^= (unsigned char)(1U << next() % 8);
      break;
    case 1:
      in->size = at;  // cut
      break;
    case 2: {  // longer
      size_t more = next() % 32;
      for (; more > 0 && in->size < ROOM; --more) {
        in->bytes[in->size++] = (unsigned char)next();
      }
      break;
    }
    case 3: {  // a number over a field
      uint64_t number = nasty[next() % (sizeof nasty / sizeof *nasty)];
      size_t field = next() % 8 * 8;
      if (field + sizeof number <= in->size) {
        memcpy(in->bytes + field, &number, sizeof number);
      }
      break;
    }
    case 4:  // a piece over another
      if (in->size > 8) {
        size_t from = next() % (in->size - 8);
        memmove(in->bytes + at % (in->size - 8), in->bytes + from, 8);
      }
      break;
    default:
      in->bytes[at] = (unsigned char)next();
      break;
  }
}

int main(void) {
  static const size_t payloads[] = {0, 1, 8, 100, 3000};
  enum { ROUNDS = 400 };
  int inputs = 0;
  int untouched = 0;
  prepare();
  for (size_t p = 0; p < sizeof payloads / sizeof *payloads; ++p) {
    input seed = sound_file(payloads[p]);
    one_input(seed.bytes, seed.size);
    TT_CHECK(accepted == ++untouched);
    for (int i = 0; i < ROUNDS; ++i, ++inputs) {
      input in = seed;
      int before = accepted;
      for (uint64_t n = 1 + next() % 4; n > 0; --n) {
        mutate(&in);
      }
      one_input(in.bytes, in.size);
      // A file taken for sound differs from the seed at most in the four bytes that say nothing yet.
      memset(in.bytes + 12, 0, 4);
      TT_CHECK(accepted == before || (in.size == seed.size && memcmp(in.bytes, seed.bytes, seed.size) == 0));
      untouched += accepted - before;
    }
  }
  one_input(NULL, 0);
  (void)unlink(path);
  (void)rmdir(folder);
  (void)printf("%d inputs, %d of them sound\n%d passed, 0 failed\n", inputs, untouched, inputs);
  return 0;
}
#endif
