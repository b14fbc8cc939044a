// SPDX-License-Identifier: Apache-2.0
//
// Reads keys as key.c writes them, for people.
#include "run/key_text.h"

#include <stdio.h>
#include <string.h>

typedef struct reader {
  const uint64_t* at;
  const uint64_t* end;
  const tt_overload* overload;
  uint64_t baked;
  tt_key_fields* out;
} reader;

static uint64_t take(reader* r) {
  return r->at < r->end ? *r->at++ : 0;
}

static tt_key_field* add(reader* r, const char* what, const char* of) {
  TT_VEC_PUSH(r->out, (tt_key_field){{0}, {0}});
  tt_key_field* field = &r->out->items[r->out->count - 1];
  snprintf(field->name, sizeof field->name, "%s%s%s", what, of[0] != '\0' ? " of " : "", of);
  return field;
}

static void add_list(reader* r, const char* what, const char* of, int n) {
  char text[sizeof((tt_key_field*)0)->text];
  size_t length = 0;
  text[0] = '\0';
  for (int i = 0; i < n; ++i) {
    long long value = (long long)take(r);
    if (length + 24 < sizeof text) {
      length += (size_t)snprintf(text + length, sizeof text - length, "%s%lld", i > 0 ? "," : "", value);
    }
  }
  tt_key_field* field = add(r, what, of);
  snprintf(field->text, sizeof field->text, "[%.*s]", (int)sizeof text - 3, text);
}

static double take_double(reader* r) {
  uint64_t bits = take(r);
  double value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

static void add_number(reader* r, const char* of) {
  uint64_t kind = take(r);
  long long integer = (long long)take(r);
  double re = take_double(r);
  double im = take_double(r);
  tt_key_field* field = add(r, "baked number", of);
  if (kind == 'i') {
    snprintf(field->text, sizeof field->text, "%lld", integer);
  } else if (kind == 'c') {
    snprintf(field->text, sizeof field->text, "%g%+gj", re, im);
  } else {
    snprintf(field->text, sizeof field->text, "%g", re);
  }
}

static void add_flags(reader* r, const char* of, uint64_t flags, uint64_t alias) {
  static const struct {
    uint64_t flag;
    const char* text;
  } rows[] = {
      {TT_KEY_HOST,      "a number on the host"  },
      {TT_KEY_WRAPPED,   "of a weak type"        },
      {TT_KEY_UNWRITTEN, "never written"         },
      {TT_KEY_DONATE,    "its memory is given up"},
      {TT_KEY_CONJ,      "a conjugate view"      },
      {TT_KEY_NEG,       "a negative view"       },
  };
  tt_key_field* field = add(r, "state", of);
  size_t length = 0;
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; ++i) {
    if ((flags & rows[i].flag) != 0 && length + 32 < sizeof field->text) {
      length += (size_t)snprintf(field->text + length, sizeof field->text - length, "%s%s", length > 0 ? ", " : "",
                                 rows[i].text);
    }
  }
  if (alias > 0) {
    snprintf(field->text + length, sizeof field->text - length, "%sthe memory of tensor %d", length > 0 ? ", " : "",
             (int)alias - 1);
  } else if (length == 0) {
    snprintf(field->text, sizeof field->text, "plain");
  }
}

static void add_tensor(reader* r, const char* of) {
  uint64_t word = take(r);
  uint64_t flags = word >> 16 & 0xffff;
  int rank = (int)(word >> 8 & 0xff);
  tt_dtype dtype = (tt_dtype)(word & 0xff);
  snprintf(add(r, "dtype", of)->text, 32, "%s", dtype == TT_DTYPE_INVALID ? "absent" : tt_dtype_text(dtype));
  add_flags(r, of, flags, word >> 32);
  if ((flags & TT_KEY_HOST) != 0) {
    if (dtype != TT_DTYPE_INVALID && r->overload->bakes_all) {
      add_number(r, of);
    }
    return;
  }
  if ((flags & TT_KEY_BASE) != 0) {
    add_list(r, "shape", of, rank);
    return;
  }
  uint64_t view = take(r);
  add_list(r, "shape", of, rank);
  add_list(r, "strides", of, rank);
  add_list(r, "memory's shape", of, (int)(view >> 16 & 0xff));
}

static void add_argument(reader* r, int index) {
  char of[32];
  uint64_t word = take(r);
  tt_arg_kind kind = (tt_arg_kind)(word & 0xff);
  bool runtime = (word >> 8 & 1) != 0;
  int count = (int)(word >> 32);
  bool in_key = !runtime || r->overload->bakes_all || (r->baked >> index & 1) != 0;
  snprintf(of, sizeof of, "argument %d", index);
  switch (kind) {
    case TT_ARG_TENSOR:
      add_tensor(r, of);
      break;
    case TT_ARG_TENSORS:
      snprintf(add(r, "number of tensors", of)->text, 16, "%d", count);
      for (int j = 0; j < count; ++j) {
        snprintf(of, sizeof of, "argument %d[%d]", index, j);
        add_tensor(r, of);
      }
      break;
    case TT_ARG_INT:
    case TT_ARG_BOOL:
    case TT_ARG_FLOAT:
    case TT_ARG_COMPLEX:
      snprintf(add(r, "class", of)->text, 16, "%s",
               kind == TT_ARG_INT     ? "int"
               : kind == TT_ARG_BOOL  ? "bool"
               : kind == TT_ARG_FLOAT ? "float"
                                      : "complex");
      if (in_key) {
        add_number(r, of);
      }
      break;
    case TT_ARG_DTYPE:
      snprintf(add(r, "value", of)->text, 32, "%s", tt_dtype_text((tt_dtype)take(r)));
      break;
    case TT_ARG_OPAQUE:
      snprintf(add(r, "value", of)->text, 32, "%lld", (long long)take(r));
      break;
    case TT_ARG_INTS:
    case TT_ARG_BOOLS:
      add_list(r, "value", of, count);
      break;
    case TT_ARG_FLOATS:
      for (int j = 0; in_key && j < count; ++j) {
        snprintf(of, sizeof of, "argument %d[%d]", index, j);
        snprintf(add(r, "baked number", of)->text, 32, "%g", take_double(r));
      }
      break;
    case TT_ARG_NUMBERS:
      snprintf(add(r, "number of numbers", of)->text, 16, "%d", count);
      for (int j = 0; j < count; ++j) {
        snprintf(of, sizeof of, "argument %d[%d]", index, j);
        if (in_key) {
          add_number(r, of);
        } else {
          snprintf(add(r, "class", of)->text, 8, "%c", (char)take(r));
        }
      }
      break;
    case TT_ARG_STRING: {
      size_t length = (size_t)take(r);
      tt_key_field* field = add(r, "value", of);
      size_t shown = length < sizeof field->text - 1 ? length : sizeof field->text - 1;
      memcpy(field->text, r->at, shown);
      r->at += (length + 7) / 8;
      break;
    }
    case TT_ARG_NONE:
    default:
      snprintf(add(r, "value", of)->text, 8, "None");
      break;
  }
}

void tt_key_read(const tt_plan* plan, tt_key_fields* out) {
  reader r = {.at = plan->key + 1, .end = plan->key + plan->key_words, .overload = plan->overload, .out = out};
  uint64_t where = take(&r);
  static const char* const precisions[] = {"none", "medium", "high", "highest"};
  snprintf(add(&r, "device", "")->text, 16, "%d", (int)(where & 0xffff));
  snprintf(add(&r, "precision", "")->text, 16, "%s", precisions[where >> 16 & 3]);
  tt_dtype real = (tt_dtype)(where >> 32 & 0xff);
  snprintf(add(&r, "default dtype", "")->text, 16, "%s", real == TT_DTYPE_INVALID ? "none" : tt_dtype_text(real));
  r.baked = take(&r);
  for (int i = 0; i < plan->overload->num_args; ++i) {
    add_argument(&r, i);
  }
}

static const tt_key_field* find(const tt_key_fields* fields, const tt_key_field* like, size_t near) {
  if (near < fields->count && strcmp(fields->items[near].name, like->name) == 0) {
    return &fields->items[near];
  }
  for (size_t i = 0; i < fields->count; ++i) {
    if (strcmp(fields->items[i].name, like->name) == 0) {
      return &fields->items[i];
    }
  }
  return NULL;
}

int tt_key_compare(const tt_key_fields* before, const tt_key_fields* now, tt_strbuf* out) {
  enum { SHOWN = 4 };
  int differ = 0;
  for (size_t i = 0; i < now->count; ++i) {
    const tt_key_field* field = &now->items[i];
    const tt_key_field* old = find(before, field, i);
    if (old != NULL && strcmp(old->text, field->text) == 0) {
      continue;
    }
    differ += 1;
    if (out != NULL && differ <= SHOWN) {
      tt_strbuf_addf(out, "%s%s: %s before, %s now", differ > 1 ? "; " : "", field->name,
                     old != NULL ? old->text : "none", field->text);
    }
  }
  for (size_t i = 0; i < before->count; ++i) {
    const tt_key_field* field = &before->items[i];
    if (find(now, field, i) == NULL) {
      differ += 1;
      if (out != NULL && differ <= SHOWN) {
        tt_strbuf_addf(out, "%s%s: %s before, none now", differ > 1 ? "; " : "", field->name, field->text);
      }
    }
  }
  if (out != NULL && differ > SHOWN) {
    tt_strbuf_addf(out, "; and %d more", differ - SHOWN);
  }
  return differ;
}
