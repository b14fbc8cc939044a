// SPDX-License-Identifier: Apache-2.0
//
// Sizes as expressions of symbols, found from samples.
#include <string.h>

#include "hlo/bounded.h"

bool tt_size_varies(const tt_size* size) {
  if (size->scale != 0) {
    return true;
  }
  for (int s = 0; s < TT_SYMBOLS; s++) {
    if (size->each[s] != 0) {
      return true;
    }
  }
  return false;
}

static int64_t product_at(const int8_t* power, const tt_symbols* at) {
  int64_t product = 1;
  for (int s = 0; s < TT_SYMBOLS; s++) {
    for (int p = 0; p < power[s]; p++) {
      product *= at->n[s];
    }
  }
  return product;
}

int64_t tt_size_at(const tt_size* size, const tt_symbols* at) {
  int64_t value = size->base;
  for (int s = 0; s < TT_SYMBOLS; s++) {
    value += size->each[s] * at->n[s];
  }
  return size->scale != 0 ? value + size->scale * product_at(size->power, at) : value;
}

bool tt_size_equal(const tt_size* x, const tt_size* y) {
  return x->base == y->base && x->scale == y->scale && memcmp(x->each, y->each, sizeof x->each) == 0 &&
         memcmp(x->power, y->power, sizeof x->power) == 0;
}

static bool agrees(const tt_size* size, int samples, const tt_symbols* at, const int64_t* values) {
  for (int k = 0; k < samples; k++) {
    if (tt_size_at(size, &at[k]) != values[k]) {
      return false;
    }
  }
  return true;
}

// a and c with values = c + a * x, from two samples with different x.
static bool line(int samples, const int64_t* x, const int64_t* values, int64_t* out_a, int64_t* out_c) {
  for (int k = 1; k < samples; k++) {
    if (x[k] != x[0]) {
      int64_t rise = values[k] - values[0];
      if (rise % (x[k] - x[0]) != 0) {
        return false;
      }
      *out_a = rise / (x[k] - x[0]);
      *out_c = values[0] - *out_a * x[0];
      return true;
    }
  }
  return false;
}

static bool fit_one(int num_symbols, int samples, const tt_symbols* at, const int64_t* values, tt_size* out) {
  for (int s = 0; s < num_symbols; s++) {
    int64_t x[TT_SAMPLES];
    for (int k = 0; k < samples; k++) {
      x[k] = at[k].n[s];
    }
    *out = (tt_size){0};
    if (line(samples, x, values, &out->each[s], &out->base) && agrees(out, samples, at, values)) {
      return true;
    }
  }
  return false;
}

// Sums of two symbols with small factors: what concatenating gives.
static bool fit_sum(int num_symbols, int samples, const tt_symbols* at, const int64_t* values, tt_size* out) {
  for (int s = 0; s < num_symbols; s++) {
    for (int t = 0; t < num_symbols; t++) {
      for (int64_t factor = 1; factor <= 2 && s != t; factor++) {
        tt_size rest;
        int64_t left[TT_SAMPLES];
        for (int k = 0; k < samples; k++) {
          left[k] = values[k] - factor * at[k].n[s];
        }
        if (fit_one(num_symbols, samples, at, left, &rest) && rest.each[s] == 0 && rest.each[t] != 0) {
          *out = rest;
          out->each[s] = factor;
          return true;
        }
      }
    }
  }
  return false;
}

// Products of degree two and three.
static bool fit_product(int num_symbols, int samples, const tt_symbols* at, const int64_t* values, tt_size* out) {
  for (int s = 0; s < num_symbols; s++) {
    for (int t = s; t < num_symbols; t++) {
      for (int u = t; u <= num_symbols; u++) {
        *out = (tt_size){0};
        out->power[s] += 1;
        out->power[t] += 1;
        if (u < num_symbols) {
          out->power[u] += 1;
        }
        int64_t x[TT_SAMPLES];
        for (int k = 0; k < samples; k++) {
          x[k] = product_at(out->power, &at[k]);
        }
        if (line(samples, x, values, &out->scale, &out->base) && agrees(out, samples, at, values)) {
          return true;
        }
      }
    }
  }
  return false;
}

bool tt_size_fit(int num_symbols, int samples, const tt_symbols* at, const int64_t* values, tt_size* out) {
  *out = (tt_size){.base = values[0]};
  if (agrees(out, samples, at, values)) {
    return true;
  }
  return fit_one(num_symbols, samples, at, values, out) || fit_sum(num_symbols, samples, at, values, out) ||
         fit_product(num_symbols, samples, at, values, out);
}

int64_t tt_size_bound(int64_t size) {
  int64_t bound = 16;
  while (bound < size) {
    if (bound > 16 && bound / 4 * 3 >= size) {
      break;
    }
    bound *= 2;
  }
  return bound > 16 && bound / 4 * 3 >= size ? bound / 4 * 3 : bound;
}
