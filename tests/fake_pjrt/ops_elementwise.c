// SPDX-License-Identifier: Apache-2.0
//
// Operations on one element at a time.
#include <math.h>
#include <string.h>

#include "program.h"

static bool is_float(const fake_array* x) {
  return fake_dtype_class(x->type.dtype) == 'f';
}
static bool is_complex(const fake_array* x) {
  return fake_dtype_class(x->type.dtype) == 'c';
}
static int bits_of(const fake_array* x) {
  return x->type.dtype == TT_BOOL ? 1 : (int)(8 * fake_dtype_size(x->type.dtype));
}

// ---- one operand ----------------------------------------------------------------------------------------------------------

static double rsqrt_of(double x) {
  return 1 / sqrt(x);
}
static double logistic_of(double x) {
  return 1 / (1 + exp(-x));
}
static double negate_of(double x) {
  return -x;
}
static double sign_of(double x) {
  return x > 0 ? 1 : x < 0 ? -1 : x;
}

typedef struct unary_row {
  const char* name;
  double (*real)(double x);
} unary_row;
static const unary_row unaries[] = {
    {"stablehlo.abs",                   fabs       },
    {"stablehlo.cbrt",                  cbrt       },
    {"stablehlo.ceil",                  ceil       },
    {"stablehlo.cosine",                cos        },
    {"stablehlo.exponential",           exp        },
    {"stablehlo.exponential_minus_one", expm1      },
    {"stablehlo.floor",                 floor      },
    {"stablehlo.log",                   log        },
    {"stablehlo.log_plus_one",          log1p      },
    {"stablehlo.logistic",              logistic_of},
    {"stablehlo.negate",                negate_of  },
    {"stablehlo.round_nearest_afz",     round      },
    {"stablehlo.round_nearest_even",    nearbyint  },
    {"stablehlo.rsqrt",                 rsqrt_of   },
    {"stablehlo.sign",                  sign_of    },
    {"stablehlo.sine",                  sin        },
    {"stablehlo.sqrt",                  sqrt       },
    {"stablehlo.tan",                   tan        },
    {"stablehlo.tanh",                  tanh       },
    {"chlo.erf",                        erf        },
};

static void eval_unary(fake_run* run, const fake_op* op, fake_array* const* in, fake_array** out) {
  (void)run;
  double (*real)(double) = NULL;
  for (size_t i = 0; i < sizeof unaries / sizeof *unaries; ++i) {
    real = strcmp(unaries[i].name, op->rule->name) == 0 ? unaries[i].real : real;
  }
  for (int64_t i = 0; i < out[0]->count; ++i) {
    fake_num x = fake_load(in[0], i);
    fake_num y = {0, 0, 0};
    if (is_float(in[0])) {
      y.re = real(x.re);
    } else if (is_complex(in[0])) {
      // Of the complex forms only the negative is known.
      bool known = real == negate_of;
      y = (fake_num){0, known ? -x.re : (double)NAN, known ? -x.im : (double)NAN};
    } else {
      y.i = real == negate_of ? (int64_t)(0 - (uint64_t)x.i)
            : real == fabs    ? (x.i < 0 ? -x.i : x.i)
                              : (x.i > 0) - (x.i < 0);
    }
    fake_store(out[0], i, y);
  }
}

static void eval_same(fake_run* run, const fake_op* op, fake_array* const* in, fake_array** out) {
  (void)run;
  (void)op;
  memcpy(out[0]->bytes, in[0]->bytes, fake_array_bytes(&out[0]->type));
}

static void eval_not(fake_run* run, const fake_op* op, fake_array* const* in, fake_array** out) {
  (void)run;
  (void)op;
  for (int64_t i = 0; i < out[0]->count; ++i) {
    fake_num x = fake_load(in[0], i);
    x.i = bits_of(in[0]) == 1 ? !x.i : ~x.i;
    fake_store(out[0], i, x);
  }
}

static void eval_popcnt(fake_run* run, const fake_op* op, fake_array* const* in, fake_array** out) {
  (void)run;
  (void)op;
  for (int64_t i = 0; i < out[0]->count; ++i) {
    uint64_t mask = bits_of(in[0]) == 64 ? UINT64_MAX : (UINT64_C(1) << bits_of(in[0])) - 1;
    fake_store(out[0], i, (fake_num){.i = __builtin_popcountll((uint64_t)fake_load(in[0], i).i & mask)});
  }
}

static void eval_is_finite(fake_run* run, const fake_op* op, fake_array* const* in, fake_array** out) {
  (void)run;
  (void)op;
  for (int64_t i = 0; i < out[0]->count; ++i) {
    fake_store(out[0], i, (fake_num){.i = isfinite(fake_load(in[0], i).re) != 0});
  }
}

static void eval_real(fake_run* run, const fake_op* op, fake_array* const* in, fake_array** out) {
  (void)run;
  bool imaginary = strcmp(op->rule->name, "stablehlo.imag") == 0;
  for (int64_t i = 0; i < out[0]->count; ++i) {
    fake_num x = fake_load(in[0], i);
    fake_store(out[0], i, (fake_num){.re = imaginary ? x.im : x.re});
  }
}

static void eval_convert(fake_run* run, const fake_op* op, fake_array* const* in, fake_array** out) {
  (void)run;
  (void)op;
  for (int64_t i = 0; i < out[0]->count; ++i) {
    fake_store(out[0], i, fake_convert(fake_load(in[0], i), in[0]->type.dtype, out[0]->type.dtype));
  }
}

// ---- two operands ---------------------------------------------------------------------------------------------------------

typedef enum binary_kind {
  ADD,
  SUB,
  MUL,
  DIV,
  REM,
  MAXIMUM,
  MINIMUM,
  AND,
  OR,
  XOR,
  POWER,
  ATAN2,
  SHL,
  SHR,
  SHRL,
  PAIR
} binary_kind;
static const char* const binaries[] = {
    [ADD] = "stablehlo.add",
    [SUB] = "stablehlo.subtract",
    [MUL] = "stablehlo.multiply",
    [DIV] = "stablehlo.divide",
    [REM] = "stablehlo.remainder",
    [MAXIMUM] = "stablehlo.maximum",
    [MINIMUM] = "stablehlo.minimum",
    [AND] = "stablehlo.and",
    [OR] = "stablehlo.or",
    [XOR] = "stablehlo.xor",
    [POWER] = "stablehlo.power",
    [ATAN2] = "stablehlo.atan2",
    [SHL] = "stablehlo.shift_left",
    [SHR] = "stablehlo.shift_right_arithmetic",
    [SHRL] = "stablehlo.shift_right_logical",
    [PAIR] = "stablehlo.complex",
};

static double binary_real(binary_kind kind, double x, double y) {
  switch (kind) {
    case ADD:
      return x + y;
    case SUB:
      return x - y;
    case MUL:
      return x * y;
    case DIV:
      return x / y;
    case REM:
      return fmod(x, y);
    case MAXIMUM:
      return isnan(x) || isnan(y) ? (double)NAN : fmax(x, y);
    case MINIMUM:
      return isnan(x) || isnan(y) ? (double)NAN : fmin(x, y);
    case POWER:
      return pow(x, y);
    case ATAN2:
      return atan2(x, y);
    default:
      return (double)NAN;
  }
}

static fake_num binary_complex(binary_kind kind, fake_num x, fake_num y) {
  double size = y.re * y.re + y.im * y.im;
  switch (kind) {
    case ADD:
      return (fake_num){0, x.re + y.re, x.im + y.im};
    case SUB:
      return (fake_num){0, x.re - y.re, x.im - y.im};
    case MUL:
      return (fake_num){0, x.re * y.re - x.im * y.im, x.re * y.im + x.im * y.re};
    case DIV:
      return (fake_num){0, (x.re * y.re + x.im * y.im) / size, (x.im * y.re - x.re * y.im) / size};
    default:
      return (fake_num){0, (double)NAN, (double)NAN};
  }
}

static uint64_t power_of(uint64_t x, int64_t y) {
  uint64_t result = 1;
  for (; y > 0; --y) {
    result *= x;
  }
  return result;
}

static int64_t binary_integer(binary_kind kind, int64_t x, int64_t y, bool is_signed, int bits) {
  uint64_t a = (uint64_t)x;
  uint64_t c = (uint64_t)y;
  bool less = is_signed ? x < y : a < c;
  bool wraps = is_signed && y == -1;  // INT64_MIN / -1
  bool shifts = c < (uint64_t)bits;
  uint64_t low = bits == 64 ? a : a & ((UINT64_C(1) << bits) - 1);
  switch (kind) {
    case ADD:
      return bits == 1 ? x | y : (int64_t)(a + c);
    case SUB:
      return (int64_t)(a - c);
    case MUL:
      return (int64_t)(a * c);
    case DIV:
      return y == 0 ? -1 : wraps ? (int64_t)(0 - a) : is_signed ? x / y : (int64_t)(a / c);
    case REM:
      return y == 0 ? x : wraps ? 0 : is_signed ? x % y : (int64_t)(a % c);
    case MAXIMUM:
      return less ? y : x;
    case MINIMUM:
      return less ? x : y;
    case AND:
      return x & y;
    case OR:
      return x | y;
    case XOR:
      return x ^ y;
    case POWER:
      return y < 0 ? x == 1 : (int64_t)power_of(a, y);
    case SHL:
      return shifts ? (int64_t)(a << c) : 0;
    case SHR:
      return shifts ? x >> c : x < 0 ? -1 : 0;
    case SHRL:
      return shifts ? (int64_t)(low >> c) : 0;
    default:
      return 0;
  }
}

static void eval_binary(fake_run* run, const fake_op* op, fake_array* const* in, fake_array** out) {
  (void)run;
  binary_kind kind = ADD;
  while (strcmp(binaries[kind], op->rule->name) != 0) {
    ++kind;
  }
  for (int64_t i = 0; i < out[0]->count; ++i) {
    fake_num x = fake_load(in[0], i);
    fake_num y = fake_load(in[1], i);
    fake_num z = {0, 0, 0};
    if (kind == PAIR) {
      z = (fake_num){0, x.re, y.re};
    } else if (is_complex(in[0])) {
      z = binary_complex(kind, x, y);
    } else if (is_float(in[0])) {
      z.re = binary_real(kind, x.re, y.re);
    } else {
      z.i = binary_integer(kind, x.i, y.i, fake_dtype_class(in[0]->type.dtype) == 'i', bits_of(in[0]));
    }
    fake_store(out[0], i, z);
  }
}

static void eval_compare(fake_run* run, const fake_op* op, fake_array* const* in, fake_array** out) {
  (void)run;
  static const char* const names[] = {" EQ>", " NE>", " GE>", " GT>", " LE>", " LT>"};
  int kind = 0;
  while (kind < 5 && !fake_attr_has(op, names[kind])) {
    ++kind;
  }
  char cls = fake_dtype_class(in[0]->type.dtype);
  for (int64_t i = 0; i < out[0]->count; ++i) {
    fake_num x = fake_load(in[0], i);
    fake_num y = fake_load(in[1], i);
    bool less = cls == 'i' ? x.i < y.i : cls == 'f' ? x.re < y.re : (uint64_t)x.i < (uint64_t)y.i;
    bool more = cls == 'i' ? x.i > y.i : cls == 'f' ? x.re > y.re : (uint64_t)x.i > (uint64_t)y.i;
    bool same = cls == 'f' || cls == 'c' ? x.re == y.re && x.im == y.im : x.i == y.i;
    const bool results[] = {same, !same, more || same, more, less || same, less};
    fake_store(out[0], i, (fake_num){.i = results[kind]});
  }
}

static void eval_select(fake_run* run, const fake_op* op, fake_array* const* in, fake_array** out) {
  (void)run;
  (void)op;
  for (int64_t i = 0; i < out[0]->count; ++i) {
    bool chosen = fake_load(in[0], in[0]->count == 1 ? 0 : i).i != 0;
    fake_store_raw(out[0], i, in[chosen ? 1 : 2], i);
  }
}

const fake_rule fake_elementwise_rules[] = {
    {"stablehlo.abs",                    eval_unary    },
    {"stablehlo.cbrt",                   eval_unary    },
    {"stablehlo.ceil",                   eval_unary    },
    {"stablehlo.cosine",                 eval_unary    },
    {"stablehlo.exponential",            eval_unary    },
    {"stablehlo.exponential_minus_one",  eval_unary    },
    {"stablehlo.floor",                  eval_unary    },
    {"stablehlo.log",                    eval_unary    },
    {"stablehlo.log_plus_one",           eval_unary    },
    {"stablehlo.logistic",               eval_unary    },
    {"stablehlo.negate",                 eval_unary    },
    {"stablehlo.round_nearest_afz",      eval_unary    },
    {"stablehlo.round_nearest_even",     eval_unary    },
    {"stablehlo.rsqrt",                  eval_unary    },
    {"stablehlo.sign",                   eval_unary    },
    {"stablehlo.sine",                   eval_unary    },
    {"stablehlo.sqrt",                   eval_unary    },
    {"stablehlo.tan",                    eval_unary    },
    {"stablehlo.tanh",                   eval_unary    },
    {"chlo.erf",                         eval_unary    },
    {"stablehlo.optimization_barrier",   eval_same     },
    {"stablehlo.not",                    eval_not      },
    {"stablehlo.popcnt",                 eval_popcnt   },
    {"stablehlo.is_finite",              eval_is_finite},
    {"stablehlo.real",                   eval_real     },
    {"stablehlo.imag",                   eval_real     },
    {"stablehlo.convert",                eval_convert  },
    {"stablehlo.add",                    eval_binary   },
    {"stablehlo.subtract",               eval_binary   },
    {"stablehlo.multiply",               eval_binary   },
    {"stablehlo.divide",                 eval_binary   },
    {"stablehlo.remainder",              eval_binary   },
    {"stablehlo.maximum",                eval_binary   },
    {"stablehlo.minimum",                eval_binary   },
    {"stablehlo.and",                    eval_binary   },
    {"stablehlo.or",                     eval_binary   },
    {"stablehlo.xor",                    eval_binary   },
    {"stablehlo.power",                  eval_binary   },
    {"stablehlo.atan2",                  eval_binary   },
    {"stablehlo.shift_left",             eval_binary   },
    {"stablehlo.shift_right_arithmetic", eval_binary   },
    {"stablehlo.shift_right_logical",    eval_binary   },
    {"stablehlo.complex",                eval_binary   },
    {"stablehlo.compare",                eval_compare  },
    {"stablehlo.select",                 eval_select   },
    {NULL,                               NULL          },
};
