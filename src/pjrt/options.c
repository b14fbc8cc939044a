// SPDX-License-Identifier: Apache-2.0
//
// Our values in PJRT's forms: element types, named values, and the bytes of XLA's CompileOptionsProto, which are written
// by hand (the wire format is a few lines; linking protobuf for four fields is not worth it).
#include <ctype.h>
#include <errno.h>
#include <string.h>

#include "pjrt/internal.h"

// ---- element types ------------------------------------------------------------------------------------------------

static const PJRT_Buffer_Type types[TT_DTYPE_COUNT] = {
    [TT_BOOL] = PJRT_Buffer_Type_PRED,
    [TT_U8] = PJRT_Buffer_Type_U8,
    [TT_I8] = PJRT_Buffer_Type_S8,
    [TT_U16] = PJRT_Buffer_Type_U16,
    [TT_I16] = PJRT_Buffer_Type_S16,
    [TT_U32] = PJRT_Buffer_Type_U32,
    [TT_I32] = PJRT_Buffer_Type_S32,
    [TT_U64] = PJRT_Buffer_Type_U64,
    [TT_I64] = PJRT_Buffer_Type_S64,
    [TT_F16] = PJRT_Buffer_Type_F16,
    [TT_BF16] = PJRT_Buffer_Type_BF16,
    [TT_F32] = PJRT_Buffer_Type_F32,
    [TT_F64] = PJRT_Buffer_Type_F64,
    [TT_C64] = PJRT_Buffer_Type_C64,
    [TT_C128] = PJRT_Buffer_Type_C128,
    [TT_F8E4M3FN] = PJRT_Buffer_Type_F8E4M3FN,
    [TT_F8E4M3FNUZ] = PJRT_Buffer_Type_F8E4M3FNUZ,
    [TT_F8E5M2] = PJRT_Buffer_Type_F8E5M2,
    [TT_F8E5M2FNUZ] = PJRT_Buffer_Type_F8E5M2FNUZ,
    [TT_F8E8M0FNU] = PJRT_Buffer_Type_F8E8M0FNU,
};

PJRT_Buffer_Type tt_pjrt_type_of(tt_dtype dtype) {
  return (size_t)dtype < TT_DTYPE_COUNT ? types[dtype] : PJRT_Buffer_Type_INVALID;
}

tt_dtype tt_pjrt_dtype_of(PJRT_Buffer_Type type) {
  for (size_t i = TT_DTYPE_INVALID + 1; i < TT_DTYPE_COUNT; ++i) {
    if (types[i] == type) {
      return (tt_dtype)i;
    }
  }
  return TT_DTYPE_INVALID;
}

// ---- named values -------------------------------------------------------------------------------------------------

PJRT_NamedValue* tt_pjrt_named_values(int count, const tt_option* options) {
  PJRT_NamedValue* values = tt_calloc((size_t)count, sizeof *values);
  for (int i = 0; i < count; ++i) {
    const tt_option* option = &options[i];
    PJRT_NamedValue* value = &values[i];
    value->struct_size = PJRT_NamedValue_STRUCT_SIZE;
    value->name = option->name;
    value->name_size = strlen(option->name);
    value->value_size = 1;
    switch (option->kind) {
      case TT_OPTION_STRING:
        value->type = PJRT_NamedValue_kString;
        value->string_value = option->text;
        value->value_size = strlen(option->text);
        break;
      case TT_OPTION_INT:
        value->type = PJRT_NamedValue_kInt64;
        value->int64_value = option->number;
        break;
      case TT_OPTION_BOOL:
        value->type = PJRT_NamedValue_kBool;
        value->bool_value = option->number != 0;
        break;
      case TT_OPTION_FLOAT:
        value->type = PJRT_NamedValue_kFloat;
        value->float_value = (float)option->real;
        break;
    }
  }
  return values;
}

// ---- protobuf -----------------------------------------------------------------------------------------------------

enum { WIRE_VARINT = 0, WIRE_FIXED64 = 1, WIRE_BYTES = 2 };

static void put_varint(tt_strbuf* out, uint64_t value) {
  for (; value >= 0x80; value >>= 7) {
    char byte = (char)(value | 0x80);
    tt_strbuf_addn(out, &byte, 1);
  }
  char byte = (char)value;
  tt_strbuf_addn(out, &byte, 1);
}

static void put_number(tt_strbuf* out, unsigned field, int64_t value) {
  put_varint(out, field << 3 | WIRE_VARINT);
  put_varint(out, (uint64_t)value);
}

static void put_double(tt_strbuf* out, unsigned field, double value) {
  put_varint(out, field << 3 | WIRE_FIXED64);
  tt_strbuf_addn(out, (const char*)&value, sizeof value);
}

static void put_bytes(tt_strbuf* out, unsigned field, const char* bytes, size_t size) {
  put_varint(out, field << 3 | WIRE_BYTES);
  put_varint(out, size);
  tt_strbuf_addn(out, bytes, size);
}

// OptionOverrideProto: string 1, bool 2, int 3, double 4.
static void put_override_value(tt_strbuf* out, const char* text) {
  char* end = NULL;
  errno = 0;
  long long integer = strtoll(text, &end, 10);
  bool whole = *text != '\0' && errno == 0 && *end == '\0' && !isspace((unsigned char)*text);
  errno = 0;
  double real = strtod(text, &end);
  // "inf", "nan" and hexadecimal floats stay text: they are names as often as numbers.
  bool decimal = *text != '\0' && errno == 0 && *end == '\0' && strspn(text, "+-.0123456789eE") == strlen(text);
  if (strcmp(text, "true") == 0 || strcmp(text, "false") == 0) {
    put_number(out, 2, text[0] == 't');
  } else if (whole) {
    put_number(out, 3, integer);
  } else if (decimal) {
    put_double(out, 4, real);
  } else {
    put_bytes(out, 1, text, strlen(text));
  }
}

// Appends one map entry (field 7 of CompileOptionsProto) for "key=value".
static tt_status put_override(tt_strbuf* out, const char* pair, size_t size) {
  const char* equals = memchr(pair, '=', size);
  if (equals == NULL || equals == pair) {
    TT_FAIL(TT_INVALID_ARGUMENT, "expected XLA options as key=value, got \"%.*s\"", (int)size, pair);
  }
  tt_strbuf text = {0};
  tt_strbuf value = {0};
  tt_strbuf entry = {0};
  tt_strbuf_addn(&text, equals + 1, size - (size_t)(equals + 1 - pair));
  put_override_value(&value, text.text);
  put_bytes(&entry, 1, pair, (size_t)(equals - pair));
  put_bytes(&entry, 2, value.text, value.length);
  put_bytes(out, 7, entry.text, entry.length);
  tt_strbuf_free(&text);
  tt_strbuf_free(&value);
  tt_strbuf_free(&entry);
  return NULL;
}

static tt_status put_overrides(tt_strbuf* out, const char* list) {
  static const char blanks[] = " \t\n";
  for (list += strspn(list, blanks); *list != '\0'; list += strspn(list, blanks)) {
    size_t size = strcspn(list, blanks);
    TT_TRY(put_override(out, list, size));
    list += size;
  }
  return NULL;
}

tt_status tt_pjrt_compile_options(const tt_compile_options* options, bool portable, tt_strbuf* out_bytes) {
  int replicas = options && options->num_replicas ? options->num_replicas : 1;
  int partitions = options && options->num_partitions ? options->num_partitions : 1;
  if (replicas < 1 || partitions < 1) {
    TT_FAIL(TT_INVALID_ARGUMENT, "expected at least one replica and partition, got %d and %d", replicas, partitions);
  }
  tt_strbuf build = {0};
  put_number(&build, 1, -1);  // device_ordinal: 0 would mean the first device, absent means 0
  put_number(&build, 4, replicas);
  put_number(&build, 5, partitions);
  if (partitions > 1) {
    put_number(&build, 6, 1);  // use_spmd_partitioning
  }
  tt_strbuf bytes = {0};
  put_bytes(&bytes, 3, build.text, build.length);  // executable_build_options
  tt_strbuf_free(&build);
  if (portable) {
    put_number(&bytes, 4, 1);  // compile_portable_executable
  }
  tt_status status = options && options->xla_options ? put_overrides(&bytes, options->xla_options) : NULL;
  if (status != NULL) {
    tt_strbuf_free(&bytes);
    return status;
  }
  *out_bytes = bytes;
  return NULL;
}
