// SPDX-License-Identifier: Apache-2.0
//
// Floating-point formats: a double rounded (to nearest, ties to even) to the bits of any float dtype, and back.
#include <math.h>
#include <string.h>

#include "hlo/graph.h"

typedef struct format {
  int exponent_bits, mantissa_bits, bias;
  enum {
    IEEE,      // infinities and NaN
    FINITE,    // no infinities, NaN is all ones ("FN")
    UNSIGNED0  // no infinities, no negative zero: its bits are NaN ("FNUZ")
  } kind;
} format;

static format format_of(tt_dtype dtype) {
  switch (dtype) {
    case TT_F16:
      return (format){5, 10, 15, IEEE};
    case TT_BF16:
      return (format){8, 7, 127, IEEE};
    case TT_F8E4M3FN:
      return (format){4, 3, 7, FINITE};
    case TT_F8E4M3FNUZ:
      return (format){4, 3, 8, UNSIGNED0};
    case TT_F8E5M2:
      return (format){5, 2, 15, IEEE};
    default:
      return (format){5, 2, 16, UNSIGNED0};  // F8E5M2FNUZ
  }
}

static uint64_t nan_bits(format f) {
  switch (f.kind) {
    case IEEE:
      return (((UINT64_C(1) << f.exponent_bits) - 1) << f.mantissa_bits) | (UINT64_C(1) << (f.mantissa_bits - 1));
    case FINITE:
      return (UINT64_C(1) << (f.exponent_bits + f.mantissa_bits)) - 1;
    default:
      return UINT64_C(1) << (f.exponent_bits + f.mantissa_bits);
  }
}

static uint64_t infinity_bits(format f) {
  return f.kind == IEEE ? ((UINT64_C(1) << f.exponent_bits) - 1) << f.mantissa_bits : nan_bits(f);
}

// F8E8M0FNU: a power of two in eight bits, no sign, no zero.
static uint64_t encode_power(double value) {
  if (!(value >= 0) || isinf(value)) {
    return 0xFF;
  }
  int exponent = 0;
  double fraction = frexp(value, &exponent);  // value = fraction * 2^exponent, fraction in [0.5, 1)
  int field = exponent - 1 + 127 + (fraction >= 0.75 ? 1 : 0);
  return value == 0 || field < 0 ? 0 : field > 0xFE ? 0xFF : (uint64_t)field;
}

static uint64_t encode_small(format f, double value) {
  uint64_t sign = signbit(value) ? UINT64_C(1) << (f.exponent_bits + f.mantissa_bits) : 0;
  if (isnan(value)) {
    return nan_bits(f);
  }
  double magnitude = fabs(value);
  if (magnitude == 0) {
    return f.kind == UNSIGNED0 ? 0 : sign;
  }
  uint64_t overflow = f.kind == UNSIGNED0 ? nan_bits(f) : sign | infinity_bits(f);
  if (isinf(magnitude)) {
    return overflow;
  }
  int exponent = 0;
  (void)frexp(magnitude, &exponent);
  exponent = exponent - 1 < 1 - f.bias ? 1 - f.bias : exponent - 1;
  // The significand as an integer. One that rounds up to the next power of two carries into the exponent field below.
  uint64_t significand = (uint64_t)nearbyint(ldexp(magnitude, f.mantissa_bits - exponent));
  uint64_t one = UINT64_C(1) << f.mantissa_bits;
  uint64_t bits =
      significand < one ? significand : ((uint64_t)(exponent + f.bias) << f.mantissa_bits) + (significand - one);
  uint64_t limit = f.kind == IEEE     ? infinity_bits(f)
                   : f.kind == FINITE ? nan_bits(f)
                                      : UINT64_C(1) << (f.exponent_bits + f.mantissa_bits);
  if (bits >= limit) {
    return overflow;
  }
  return bits == 0 && f.kind == UNSIGNED0 ? 0 : sign | bits;
}

static double decode_small(format f, uint64_t bits) {
  uint64_t sign_bit = UINT64_C(1) << (f.exponent_bits + f.mantissa_bits);
  uint64_t magnitude = bits & (sign_bit - 1);
  double sign = bits & sign_bit ? -1.0 : 1.0;
  if ((f.kind == UNSIGNED0 && bits == sign_bit) || (f.kind == FINITE && magnitude == nan_bits(f)) ||
      (f.kind == IEEE && magnitude > infinity_bits(f))) {
    return (double)NAN;
  }
  if (f.kind == IEEE && magnitude == infinity_bits(f)) {
    return sign * (double)INFINITY;
  }
  uint64_t one = UINT64_C(1) << f.mantissa_bits;
  int field = (int)(magnitude >> f.mantissa_bits);
  uint64_t significand = field ? one + (magnitude & (one - 1)) : magnitude;
  return sign * ldexp((double)significand, (field ? field : 1) - f.bias - f.mantissa_bits);
}

uint64_t tt_float_encode(tt_dtype dtype, double value) {
  uint64_t bits = 0;
  if (dtype == TT_F64) {
    memcpy(&bits, &value, sizeof value);
    return bits;
  }
  if (dtype == TT_F32) {
    float narrow = (float)value;
    memcpy(&bits, &narrow, sizeof narrow);
    return bits;
  }
  return dtype == TT_F8E8M0FNU ? encode_power(value) : encode_small(format_of(dtype), value);
}

double tt_float_decode(tt_dtype dtype, uint64_t bits) {
  if (dtype == TT_F64) {
    double value = 0;
    memcpy(&value, &bits, sizeof value);
    return value;
  }
  if (dtype == TT_F32) {
    float value = 0;
    memcpy(&value, &bits, sizeof value);
    return (double)value;
  }
  if (dtype == TT_F8E8M0FNU) {
    return bits == 0xFF ? (double)NAN : ldexp(1.0, (int)bits - 127);
  }
  return decode_small(format_of(dtype), bits);
}
