// SPDX-License-Identifier: Apache-2.0
//
// Operations of their own kind: random bits, FFT, linear algebra, custom calls.
#include <inttypes.h>

#include "hlo/graph.h"

static bool reject_bounded(tt_builder* b, const char* who, tt_val x) {
  if (tt_type_of(b, x)->bounded) {
    tt_builder_fail(b, TT_UNIMPLEMENTED, "%s: expected static sizes, got %s", who, tt_show(b, x));
    return true;
  }
  return false;
}

void tt_rng_bits(tt_builder* b, tt_val state, const tt_type* type, tt_val* out_state, tt_val* out_bits) {
  *out_state = *out_bits = TT_POISON;
  if (!tt_usable(b, "rng_bit_generator", 1, &state)) {
    return;
  }
  const tt_type* ts = tt_type_of(b, state);
  if (ts->dtype != TT_U64 || ts->rank != 1 || ts->dims[0] != 3) {
    tt_builder_fail(b, TT_INVALID_ARGUMENT, "rng_bit_generator: expected a state of type ui64[3], got %s",
                    tt_show(b, state));
    return;
  }
  if (tt_dtype_class(type->dtype) != 'u' || type->bounded) {
    tt_builder_fail(b, TT_INVALID_ARGUMENT, "rng_bit_generator: expected an unsigned dtype and static sizes, got %s",
                    tt_show_type(b, type));
    return;
  }
  tt_type types[2] = {*ts, *type};
  tt_spec spec = {.mnemonic = "stablehlo.rng_bit_generator",
                  .attrs = "rng_algorithm = #stablehlo<rng_algorithm PHILOX>",
                  .num_operands = 1,
                  .operands = &state,
                  .num_results = 2,
                  .results = types};
  tt_val first = tt_emit(b, &spec);
  *out_state = first;
  *out_bits = first ? first + 1 : TT_POISON;
}

tt_val tt_fft(tt_builder* b, tt_fft_kind kind, tt_val x, int n, const int64_t* lengths) {
  static const char* const names[] = {"FFT", "IFFT", "RFFT", "IRFFT"};
  if (!tt_usable(b, "fft", 1, &x) || reject_bounded(b, "fft", x)) {
    return TT_POISON;
  }
  tt_type type = *tt_type_of(b, x);
  bool real_input = kind == TT_RFFT;
  bool fits = real_input ? type.dtype == TT_F32 || type.dtype == TT_F64 : tt_dtype_is_complex(type.dtype);
  if (!fits) {
    return tt_builder_fail(b, TT_INVALID_ARGUMENT, "fft: expected a %s operand, got %s",
                           real_input ? "f32 or f64" : "complex", tt_show(b, x));
  }
  if (n < 1 || n > 3 || n > type.rank) {
    return tt_builder_fail(b, TT_INVALID_ARGUMENT, "fft: expected 1 to 3 transformed dimensions of %s, got %d",
                           tt_show(b, x), n);
  }
  for (int i = 0; i < n; i++) {
    bool halved = kind == TT_IRFFT && i == n - 1;
    int64_t expected = halved ? lengths[i] / 2 + 1 : lengths[i];
    int64_t got = type.dims[type.rank - n + i];
    if (lengths[i] < 0 || (got != expected && !(halved && lengths[i] == 0 && got == 0))) {
      return tt_builder_fail(b, TT_INVALID_ARGUMENT,
                             "fft: expected size %" PRId64 " for length %" PRId64 ", got %" PRId64 " in %s", expected,
                             lengths[i], got, tt_show(b, x));
    }
  }
  if (kind == TT_RFFT) {
    type.dtype = tt_dtype_complex(type.dtype);
    type.dims[type.rank - 1] = lengths[n - 1] == 0 ? 0 : lengths[n - 1] / 2 + 1;
  } else if (kind == TT_IRFFT) {
    type.dtype = tt_dtype_real(type.dtype);
    type.dims[type.rank - 1] = lengths[n - 1];
  }
  TT_SCOPED_TEXT(attrs);
  TT_ATTR(&attrs, "fft_type = #stablehlo<fft_type %s>", names[kind]);
  tt_attr_ints(&attrs, "fft_length", n, lengths);
  return tt_emit1(b, "stablehlo.fft", attrs.text, 1, &x, &type);
}

// ---- linear algebra -----------------------------------------------------------------------------------------------

static bool check_square(tt_builder* b, const char* who, tt_val a) {
  const tt_type* type = tt_type_of(b, a);
  char cls = tt_dtype_class(type->dtype);
  if ((cls != 'f' && cls != 'c') || type->rank < 2 || type->dims[type->rank - 1] != type->dims[type->rank - 2]) {
    tt_builder_fail(b, TT_INVALID_ARGUMENT, "%s: expected square matrices of a float or complex dtype, got %s", who,
                    tt_show(b, a));
    return false;
  }
  return !reject_bounded(b, who, a);
}

tt_val tt_cholesky(tt_builder* b, tt_val a, bool lower) {
  if (!tt_usable(b, "cholesky", 1, &a) || !check_square(b, "cholesky", a)) {
    return TT_POISON;
  }
  return tt_emit1(b, "stablehlo.cholesky", lower ? "lower = true" : "lower = false", 1, &a, tt_type_of(b, a));
}

tt_val tt_triangular_solve(tt_builder* b, tt_val a, tt_val rhs, bool left, bool lower, bool unit_diagonal,
                           int transpose) {
  static const char* const names[] = {"NO_TRANSPOSE", "TRANSPOSE", "ADJOINT"};
  tt_val operands[] = {a, rhs};
  if (!tt_usable(b, "triangular_solve", 2, operands) || !check_square(b, "triangular_solve", a) ||
      reject_bounded(b, "triangular_solve", rhs)) {
    return TT_POISON;
  }
  const tt_type *ta = tt_type_of(b, a), *tr = tt_type_of(b, rhs);
  bool fits = ta->dtype == tr->dtype && ta->rank == tr->rank;
  for (int d = 0; fits && d < ta->rank - 2; d++) {
    fits = ta->dims[d] == tr->dims[d];
  }
  if (!fits || tr->dims[tr->rank - (left ? 2 : 1)] != ta->dims[ta->rank - 1]) {
    return tt_builder_fail(b, TT_INVALID_ARGUMENT, "triangular_solve: expected a right-hand side that fits %s, got %s",
                           tt_show(b, a), tt_show(b, rhs));
  }
  if (transpose < 0 || transpose > 2) {
    return tt_builder_fail(b, TT_INVALID_ARGUMENT, "triangular_solve: expected transpose 0, 1 or 2, got %d", transpose);
  }
  TT_SCOPED_TEXT(attrs);
  TT_ATTR(&attrs, "left_side = %s, lower = %s, unit_diagonal = %s, transpose_a = #stablehlo<transpose %s>",
          left ? "true" : "false", lower ? "true" : "false", unit_diagonal ? "true" : "false", names[transpose]);
  return tt_emit1(b, "stablehlo.triangular_solve", attrs.text, 2, operands, tr);
}

// ---- custom calls -------------------------------------------------------------------------------------------------

// An MLIR string: quotes, backslashes and bytes that are not printable as \hh.
static void add_string(tt_strbuf* s, const char* text) {
  tt_strbuf_add(s, "\"");
  for (; *text; text++) {
    unsigned char c = (unsigned char)*text;
    if (c < 32 || c > 126 || c == '"' || c == '\\') {
      tt_strbuf_addf(s, "\\%02X", c);
    } else {
      tt_strbuf_addn(s, text, 1);
    }
  }
  tt_strbuf_add(s, "\"");
}

void tt_custom_call(tt_builder* b, const char* target, const char* backend_config, int n, const tt_val* operands,
                    int num_results, const tt_type* result_types, tt_val* out_results) {
  TT_SCOPED_TEXT(attrs);
  TT_ATTR(&attrs, "call_target_name = ");
  add_string(&attrs, target);
  TT_ATTR(&attrs, "backend_config = ");
  add_string(&attrs, backend_config ? backend_config : "");
  TT_ATTR(&attrs, "has_side_effect = false");
  tt_spec spec = {.mnemonic = "stablehlo.custom_call",
                  .attrs = attrs.text,
                  .num_operands = n,
                  .operands = operands,
                  .num_results = num_results,
                  .results = result_types};
  tt_spread(tt_emit(b, &spec), num_results, out_results);
}
