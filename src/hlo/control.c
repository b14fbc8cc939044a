// SPDX-License-Identifier: Apache-2.0
//
// Control flow: while, if, and composites (an operation with a name and a decomposition that any plugin understands).
#include <string.h>

#include "hlo/graph.h"

static tt_type* types_of(tt_builder* b, int n, const tt_val* values) {
  tt_type* types = tt_arena_alloc(&b->arena, sizeof *types * (size_t)n);
  for (int i = 0; i < n; i++) {
    types[i] = *tt_type_of(b, values[i]);
  }
  return types;
}

static bool check_results(tt_builder* b, const char* who, const char* part, const tt_region* region,
                          const tt_type* types) {
  for (int i = 0; i < region->num_results; i++) {
    if (!tt_type_equal(tt_type_of(b, region->results[i]), &types[i])) {
      tt_builder_fail(b, TT_INVALID_ARGUMENT, "%s: expected the %s to give %s as result %d, got %s", who, part,
                      tt_show_type(b, &types[i]), i, tt_show(b, region->results[i]));
      return false;
    }
  }
  return true;
}

static tt_val emit_while(tt_builder* b, int n, const tt_val* inits, tt_body cond, tt_body body, void* ctx) {
  if (!tt_usable(b, "while", n, inits)) {
    return TT_POISON;
  }
  tt_type* types = types_of(b, n, inits);
  tt_type flag = tt_type_scalar(TT_BOOL);
  tt_region* regions[2];
  regions[0] = tt_region_build(b, "while", false, n, types, 1, cond, ctx);
  regions[1] = tt_region_build(b, "while", false, n, types, n, body, ctx);
  if (!regions[0] || !regions[1] || !check_results(b, "while", "condition", regions[0], &flag) ||
      !check_results(b, "while", "body", regions[1], types)) {
    return TT_POISON;
  }
  tt_spec spec = {.mnemonic = "stablehlo.while",
                  .num_operands = n,
                  .operands = inits,
                  .num_results = n,
                  .results = types,
                  .num_regions = 2,
                  .regions = regions};
  return tt_emit(b, &spec);
}

void tt_while(tt_builder* b, int n, const tt_val* inits, tt_body cond, tt_body body, void* ctx, tt_val* out_results) {
  tt_spread(emit_while(b, n, inits, cond, body, ctx), n, out_results);
}

static tt_val emit_if(tt_builder* b, tt_val pred, int n, tt_body on_true, tt_body on_false, void* ctx) {
  if (!tt_usable(b, "if", 1, &pred)) {
    return TT_POISON;
  }
  if (tt_dtype_of(b, pred) != TT_BOOL || tt_rank_of(b, pred) != 0) {
    return tt_builder_fail(b, TT_INVALID_ARGUMENT, "if: expected a 0-d bool predicate, got %s", tt_show(b, pred));
  }
  tt_region* regions[2];
  regions[0] = tt_region_build(b, "if", false, 0, NULL, n, on_true, ctx);
  regions[1] = tt_region_build(b, "if", false, 0, NULL, n, on_false, ctx);
  if (!regions[0] || !regions[1]) {
    return TT_POISON;
  }
  tt_type* types = types_of(b, n, regions[0]->results);
  if (!check_results(b, "if", "second branch", regions[1], types)) {
    return TT_POISON;
  }
  tt_spec spec = {.mnemonic = "stablehlo.if",
                  .num_operands = 1,
                  .operands = &pred,
                  .num_results = n,
                  .results = types,
                  .num_regions = 2,
                  .regions = regions};
  return tt_emit(b, &spec);
}

void tt_if(tt_builder* b, tt_val pred, int n, tt_body on_true, tt_body on_false, void* ctx, tt_val* out_results) {
  tt_spread(emit_if(b, pred, n, on_true, on_false, ctx), n, out_results);
}

static tt_val emit_composite(tt_builder* b, const char* name, const char* attributes, int n, const tt_val* operands,
                             tt_body body, void* ctx, int num_results) {
  if (!tt_usable(b, "composite", n, operands)) {
    return TT_POISON;
  }
  if (!strchr(name, '.') || strpbrk(name, "\"\\\n")) {
    return tt_builder_fail(b, TT_INVALID_ARGUMENT, "composite: expected a name with a namespace, got '%s'", name);
  }
  tt_type* types = types_of(b, n, operands);
  tt_region* region = tt_region_build(b, "composite", true, n, types, num_results, body, ctx);
  if (!region) {
    return TT_POISON;
  }
  TT_SCOPED_TEXT(attrs);
  TT_ATTR(&attrs, "name = \"%s\"", name);
  TT_ATTR(&attrs, "composite_attributes = %s", attributes ? attributes : "{}");
  tt_spec spec = {.mnemonic = "stablehlo.composite",
                  .attrs = attrs.text,
                  .outlined = true,
                  .num_operands = n,
                  .operands = operands,
                  .num_results = num_results,
                  .results = types_of(b, num_results, region->results),
                  .num_regions = 1,
                  .regions = &region};
  return tt_emit(b, &spec);
}

void tt_composite(tt_builder* b, const char* name, const char* attributes, int n, const tt_val* operands, tt_body body,
                  void* ctx, int num_results, tt_val* out_results) {
  tt_spread(emit_composite(b, name, attributes, n, operands, body, ctx, num_results), num_results, out_results);
}
