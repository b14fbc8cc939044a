// SPDX-License-Identifier: Apache-2.0
//
// The golden runner: builds each program, and compares its text with the file or writes the file.
#include "golden/golden.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

static golden* entries;

void golden_register(golden* entry) {
  entry->next = entries;
  entries = entry;
}

// The file's text, or "" if there is no file.
static char* read_text(const char* path) {
  tt_strbuf text = {0};
  FILE* file = fopen(path, "rb");
  char chunk[4096];
  for (size_t n = 1; file && n > 0;) {
    n = fread(chunk, 1, sizeof chunk, file);
    tt_strbuf_addn(&text, chunk, n);
  }
  if (file) {
    (void)fclose(file);
  }
  return tt_strbuf_take(&text);
}

static bool write_text(const char* path, const char* text) {
  FILE* file = fopen(path, "wb");
  bool good = file && fputs(text, file) >= 0;
  return file && fclose(file) == 0 && good;
}

// What the builder says: the program, or the error's text.
static char* build(const golden* entry) {
  tt_builder* b = tt_builder_create();
  tt_val output = entry->build(b);
  char* text = NULL;
  tt_status status = tt_builder_finish(b, entry->name, 1, &output, &text);
  if (status) {
    tt_strbuf error = {0};
    tt_strbuf_addf(&error, "%s: %s\n", tt_code_name(tt_status_code(status)), tt_status_text(status));
    text = tt_strbuf_take(&error);
    tt_status_free(status);
  }
  tt_builder_destroy(b);
  return text;
}

static void show_difference(const char* path, const char* want, const char* got) {
  size_t at = 0, line = 1;
  for (; want[at] && want[at] == got[at]; at++) {
    line += want[at] == '\n';
  }
  while (at > 0 && want[at - 1] != '\n') {
    at--;
  }
  (void)printf("  %s:%zu:\n  expected %.*s\n  got      %.*s\n", path, line, (int)strcspn(want + at, "\n"), want + at,
               (int)strcspn(got + at, "\n"), got + at);
}

static bool run(const golden* entry, bool update) {
  char path[1024];
  (void)snprintf(path, sizeof path, "%s/tests/golden/%s.txt", TT_SOURCE_DIR, entry->name);
  char* got = build(entry);
  char* want = read_text(path);
  bool good = strcmp(got, want) == 0;
  if (!good && update) {
    good = write_text(path, got);
    (void)printf("%s %s\n", good ? "wrote" : "cannot write", path);
  } else if (!good) {
    (void)printf("FAILED golden.%s\n", entry->name);
    show_difference(path, want, got);
  }
  free(got);
  free(want);
  return good;
}

int main(int argc, char** argv) {
  int passed = 0, failed = 0;
  bool update = false;
  for (int i = 1; i < argc; i++) {
    update = update || strcmp(argv[i], "--update") == 0;
  }
  for (const golden* entry = entries; entry; entry = entry->next) {
    bool chosen = argc - (update ? 1 : 0) == 1;
    for (int i = 1; i < argc; i++) {
      chosen = chosen || strstr(entry->name, argv[i]);
    }
    if (chosen) {
      *(run(entry, update) ? &passed : &failed) += 1;
    }
  }
  (void)printf("%d passed, %d failed\n", passed, failed);
  return failed > 0 || passed == 0;
}
