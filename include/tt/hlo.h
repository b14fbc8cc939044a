// SPDX-License-Identifier: Apache-2.0
//
// Building a StableHLO program. A builder collects operations; each emit function checks its operands by StableHLO's
// type rules (https://github.com/openxla/stablehlo/blob/main/docs/spec.md), and returns the result as a `tt_val`.
//
// Errors are sticky: the first bad emit is remembered, everything after it returns TT_POISON, and
// `tt_builder_finish` reports it. Lowering code therefore checks nothing on the way.
//
// Two layers live here. "Primitives" are StableHLO operations, one to one: operand types must match exactly.
// "Sugar" (bottom) broadcasts operands as PyTorch and NumPy do, makes constants of the right type, and so on.
//
// C leaves the order of argument evaluation open; name intermediate values where a reader cares. Values that are not
// reachable from the outputs are not printed, and numbering is by a walk from the outputs, so two ways of building
// the same computation print the same text.
//
// Ownership: the builder owns all nodes and text; a tt_val is an index into it. Thread rule: one thread at a time.
#ifndef TT_HLO_H
#define TT_HLO_H

#include "tt/type.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tt_builder tt_builder;
typedef uint32_t tt_val;
#define TT_POISON ((tt_val)0)

// Emits the body of a region: reads `args`, fills `results`. Values from outside may be used.
typedef void (*tt_body)(tt_builder* b, const tt_val* args, tt_val* results, void* ctx);

// ---- life ---------------------------------------------------------------------------------------------------------
TT_EXPORT tt_builder* tt_builder_create(void);
TT_EXPORT void tt_builder_destroy(tt_builder* b);  // accepts NULL
// Sets the sticky error unless one is set already. Returns TT_POISON.
TT_EXPORT tt_val tt_builder_fail(tt_builder* b, tt_code code, const char* fmt, ...) TT_PRINTF(3, 4);
TT_EXPORT bool tt_builder_failed(const tt_builder* b);
// Hands over the sticky error (NULL if none) and clears it.
TT_EXPORT TT_NODISCARD tt_status tt_builder_take_error(tt_builder* b);
// Precision that dot_general and convolution carry from now on: 0 DEFAULT, 1 HIGH, 2 HIGHEST. Starts as 2.
TT_EXPORT void tt_builder_set_precision(tt_builder* b, int precision);
TT_EXPORT bool tt_builder_used_precision(const tt_builder* b);  // some operation so far carries it

// The n-th call makes program parameter n.
TT_EXPORT tt_val tt_param(tt_builder* b, const tt_type* type);
TT_EXPORT int tt_builder_param_count(const tt_builder* b);
TT_EXPORT const tt_type* tt_builder_param_type(const tt_builder* b, int index);
// Parameter `param`'s memory may be reused for output `output` (`tf.aliasing_output`).
TT_EXPORT void tt_builder_alias(tt_builder* b, int param, int output);
// Prints the module `@name` whose main function returns `outputs`. Parameters keep their numbers even if unused.
// The text is malloc'ed and owned by the caller. Reports the sticky error.
TT_EXPORT TT_NODISCARD tt_status tt_builder_finish(tt_builder* b, const char* name, int num_outputs,
                                                   const tt_val* outputs, char** out_text);

TT_EXPORT const tt_type* tt_type_of(const tt_builder* b, tt_val v);  // never NULL; an f32 scalar for poison
TT_EXPORT tt_dtype tt_dtype_of(const tt_builder* b, tt_val v);
TT_EXPORT int tt_rank_of(const tt_builder* b, tt_val v);
TT_EXPORT int64_t tt_dim_of(const tt_builder* b, tt_val v, int d);
// True and the value if `v` is a splat integer/float constant.
TT_EXPORT bool tt_val_is_const(const tt_builder* b, tt_val v, double* out_value);

// ---- constants ----------------------------------------------------------------------------------------------------
// Splats of a whole type. Values are rounded to the type's dtype; `im` is ignored for real types.
TT_EXPORT tt_val tt_splat_f(tt_builder* b, const tt_type* type, double re, double im);
TT_EXPORT tt_val tt_splat_i(tt_builder* b, const tt_type* type, int64_t value);
// 0-d constants.
TT_EXPORT tt_val tt_const_f(tt_builder* b, tt_dtype dtype, double value);
TT_EXPORT tt_val tt_const_i(tt_builder* b, tt_dtype dtype, int64_t value);
// 1-d constant of an integer dtype or bool.
TT_EXPORT tt_val tt_const_ints(tt_builder* b, tt_dtype dtype, int64_t n, const int64_t* values);
// Dense constant of any type from host bytes in row-major order (tt_type_bytes long; bool one byte an element).
TT_EXPORT tt_val tt_const_bytes(tt_builder* b, const tt_type* type, const void* bytes);
// Lowest/highest finite value, and -inf/+inf for floats (lowest/highest for integers and bool).
TT_EXPORT tt_val tt_const_min(tt_builder* b, tt_dtype dtype);  // -inf, INT_MIN, false
TT_EXPORT tt_val tt_const_max(tt_builder* b, tt_dtype dtype);  // +inf, INT_MAX, true

// ---- elementwise primitives: one row each --------------------------------------------------------------------------
// P1(enumerator, "dialect.mnemonic", operand classes, result): classes is a set of dtype class letters (f stands for real
// floats). result: '=' same dtype, 'b' bool, 'r' real part's dtype.
#define TT_UNARY_PRIMS(P1)                                           \
  P1(TT_ABS, "stablehlo.abs", "ifc", 'r')                            \
  P1(TT_CBRT, "stablehlo.cbrt", "f", '=')                            \
  P1(TT_CEIL, "stablehlo.ceil", "f", '=')                            \
  P1(TT_CLZ, "stablehlo.count_leading_zeros", "ui", '=')             \
  P1(TT_COSINE, "stablehlo.cosine", "fc", '=')                       \
  P1(TT_EXP, "stablehlo.exponential", "fc", '=')                     \
  P1(TT_EXPM1, "stablehlo.exponential_minus_one", "fc", '=')         \
  P1(TT_FLOOR, "stablehlo.floor", "f", '=')                          \
  P1(TT_IMAG, "stablehlo.imag", "fc", 'r')                           \
  P1(TT_IS_FINITE, "stablehlo.is_finite", "f", 'b')                  \
  P1(TT_LOG, "stablehlo.log", "fc", '=')                             \
  P1(TT_LOG1P, "stablehlo.log_plus_one", "fc", '=')                  \
  P1(TT_LOGISTIC, "stablehlo.logistic", "fc", '=')                   \
  P1(TT_NEG, "stablehlo.negate", "uifc", '=')                        \
  P1(TT_NOT, "stablehlo.not", "bui", '=')                            \
  P1(TT_POPCNT, "stablehlo.popcnt", "ui", '=')                       \
  P1(TT_REAL, "stablehlo.real", "fc", 'r')                           \
  P1(TT_ROUND_AFZ, "stablehlo.round_nearest_afz", "f", '=')          \
  P1(TT_ROUND_EVEN, "stablehlo.round_nearest_even", "f", '=')        \
  P1(TT_RSQRT, "stablehlo.rsqrt", "fc", '=')                         \
  P1(TT_SIGN, "stablehlo.sign", "ifc", '=')                          \
  P1(TT_SINE, "stablehlo.sine", "fc", '=')                           \
  P1(TT_SQRT, "stablehlo.sqrt", "fc", '=')                           \
  P1(TT_TAN, "stablehlo.tan", "fc", '=')                             \
  P1(TT_TANH, "stablehlo.tanh", "fc", '=')                           \
  P1(TT_OPT_BARRIER, "stablehlo.optimization_barrier", "buifc", '=') \
  P1(TT_CHLO_ACOS, "chlo.acos", "fc", '=')                           \
  P1(TT_CHLO_ACOSH, "chlo.acosh", "fc", '=')                         \
  P1(TT_CHLO_ASIN, "chlo.asin", "fc", '=')                           \
  P1(TT_CHLO_ASINH, "chlo.asinh", "fc", '=')                         \
  P1(TT_CHLO_ATAN, "chlo.atan", "fc", '=')                           \
  P1(TT_CHLO_ATANH, "chlo.atanh", "fc", '=')                         \
  P1(TT_CHLO_BESSEL_I1E, "chlo.bessel_i1e", "f", '=')                \
  P1(TT_CHLO_CONJ, "chlo.conj", "fc", '=')                           \
  P1(TT_CHLO_COSH, "chlo.cosh", "fc", '=')                           \
  P1(TT_CHLO_DIGAMMA, "chlo.digamma", "f", '=')                      \
  P1(TT_CHLO_ERF, "chlo.erf", "f", '=')                              \
  P1(TT_CHLO_ERF_INV, "chlo.erf_inv", "f", '=')                      \
  P1(TT_CHLO_ERFC, "chlo.erfc", "f", '=')                            \
  P1(TT_CHLO_LGAMMA, "chlo.lgamma", "f", '=')                        \
  P1(TT_CHLO_SINH, "chlo.sinh", "fc", '=')

#define TT_BINARY_PRIMS(P2)                                      \
  P2(TT_ADD, "stablehlo.add", "buifc", '=')                      \
  P2(TT_AND, "stablehlo.and", "bui", '=')                        \
  P2(TT_ATAN2, "stablehlo.atan2", "fc", '=')                     \
  P2(TT_COMPLEX, "stablehlo.complex", "f", 'c')                  \
  P2(TT_DIV, "stablehlo.divide", "uifc", '=')                    \
  P2(TT_MAX, "stablehlo.maximum", "buifc", '=')                  \
  P2(TT_MIN, "stablehlo.minimum", "buifc", '=')                  \
  P2(TT_MUL, "stablehlo.multiply", "buifc", '=')                 \
  P2(TT_OR, "stablehlo.or", "bui", '=')                          \
  P2(TT_POW, "stablehlo.power", "uifc", '=')                     \
  P2(TT_REM, "stablehlo.remainder", "uif", '=')                  \
  P2(TT_SHL, "stablehlo.shift_left", "ui", '=')                  \
  P2(TT_SHR, "stablehlo.shift_right_arithmetic", "ui", '=')      \
  P2(TT_SHR_LOGICAL, "stablehlo.shift_right_logical", "ui", '=') \
  P2(TT_SUB, "stablehlo.subtract", "uifc", '=')                  \
  P2(TT_XOR, "stablehlo.xor", "bui", '=')                        \
  P2(TT_CHLO_NEXT_AFTER, "chlo.next_after", "f", '=')            \
  P2(TT_CHLO_POLYGAMMA, "chlo.polygamma", "f", '=')              \
  P2(TT_CHLO_ZETA, "chlo.zeta", "f", '=')

typedef enum tt_prim {
  TT_PRIM_NONE = 0,
#define TT_PRIM_ENUM(id, text, classes, result) id,
  TT_UNARY_PRIMS(TT_PRIM_ENUM) TT_BINARY_PRIMS(TT_PRIM_ENUM)
#undef TT_PRIM_ENUM
      TT_PRIM_COUNT
} tt_prim;

typedef enum tt_cmp { TT_EQ, TT_NE, TT_GE, TT_GT, TT_LE, TT_LT } tt_cmp;

TT_EXPORT tt_val tt_unary(tt_builder* b, tt_prim prim, tt_val x);
TT_EXPORT tt_val tt_binary(tt_builder* b, tt_prim prim, tt_val x, tt_val y);              // equal types
TT_EXPORT tt_val tt_compare(tt_builder* b, tt_cmp cmp, tt_val x, tt_val y);               // equal types, gives bool
TT_EXPORT tt_val tt_select(tt_builder* b, tt_val pred, tt_val on_true, tt_val on_false);  // equal dims
// Numeric conversion as PyTorch's `.to`: float to int truncates, to bool is != 0, complex to real drops the imaginary part.
TT_EXPORT tt_val tt_convert(tt_builder* b, tt_val x, tt_dtype dtype);
// Same bits. Different element sizes add or remove a last dimension, as stablehlo.bitcast_convert does.
TT_EXPORT tt_val tt_bitcast(tt_builder* b, tt_val x, tt_dtype dtype);
TT_EXPORT tt_val tt_reduce_precision(tt_builder* b, tt_val x, int exponent_bits, int mantissa_bits);

// ---- shape primitives -----------------------------------------------------------------------------------------------
TT_EXPORT tt_val tt_reshape(tt_builder* b, tt_val x, int rank, const int64_t* dims);
// Result dimension d is operand dimension perm[d].
TT_EXPORT tt_val tt_transpose(tt_builder* b, tt_val x, const int64_t* perm);
// Operand dimension k becomes result dimension map[k]; sizes equal or 1.
TT_EXPORT tt_val tt_broadcast_in_dim(tt_builder* b, tt_val x, int rank, const int64_t* dims, const int64_t* map);
TT_EXPORT tt_val tt_slice(tt_builder* b, tt_val x, const int64_t* start, const int64_t* limit, const int64_t* stride);
TT_EXPORT tt_val tt_pad(tt_builder* b, tt_val x, tt_val value, const int64_t* low, const int64_t* high,
                        const int64_t* interior);
TT_EXPORT tt_val tt_concat(tt_builder* b, int n, const tt_val* xs, int dim);
TT_EXPORT tt_val tt_reverse(tt_builder* b, tt_val x, int ndims, const int64_t* dims);
TT_EXPORT tt_val tt_iota(tt_builder* b, const tt_type* type, int dim);
// starts: `rank` 0-d integer values of one dtype.
TT_EXPORT tt_val tt_dynamic_slice(tt_builder* b, tt_val x, const tt_val* starts, const int64_t* sizes);
TT_EXPORT tt_val tt_dynamic_update_slice(tt_builder* b, tt_val x, tt_val update, const tt_val* starts);
// Marks dimension d of x as having the run-time size `size` (0-d i32); see docs/tour.md on bounded types.
TT_EXPORT tt_val tt_set_dimension_size(tt_builder* b, tt_val x, tt_val size, int d);
TT_EXPORT tt_val tt_get_dimension_size(tt_builder* b, tt_val x, int d);

// ---- contractions ----------------------------------------------------------------------------------------------------
// Result dims: batch, then lhs free, then rhs free. `result` is the result's dtype (accumulator), TT_DTYPE_INVALID = lhs's.
TT_EXPORT tt_val tt_dot_general(tt_builder* b, tt_val lhs, tt_val rhs, int num_batch, const int64_t* lhs_batch,
                                const int64_t* rhs_batch, int num_contract, const int64_t* lhs_contract,
                                const int64_t* rhs_contract, tt_dtype result);

// Convolution over `spatial` dimensions (at most 8). Arrays of length `spatial`; dimension numbers name where each
// logical dimension stands in lhs (batch, feature, spatial...), rhs (input feature, output feature, spatial...) and output.
typedef struct tt_conv {
  int spatial;
  int64_t stride[8], pad_low[8], pad_high[8], lhs_dilation[8], rhs_dilation[8];
  bool reversal[8];  // window reversal
  int64_t feature_groups, batch_groups;
  int64_t lhs_batch, lhs_feature, lhs_spatial[8];
  int64_t rhs_in, rhs_out, rhs_spatial[8];
  int64_t out_batch, out_feature, out_spatial[8];
} tt_conv;
// A tt_conv with strides/dilations 1, no padding, one group, lhs and out [N, C, spatial...], rhs [O, I, spatial...].
TT_EXPORT tt_conv tt_conv_default(int spatial);
TT_EXPORT tt_val tt_convolution(tt_builder* b, tt_val lhs, tt_val rhs, const tt_conv* conv, tt_dtype result);

// ---- reductions, windows, scans, sorting ------------------------------------------------------------------------------
typedef enum tt_reduce_kind {
  TT_REDUCE_SUM,
  TT_REDUCE_PROD,
  TT_REDUCE_MAX,
  TT_REDUCE_MIN,
  TT_REDUCE_AND,
  TT_REDUCE_OR
} tt_reduce_kind;
TT_EXPORT tt_val tt_reduce_init(tt_builder* b, tt_reduce_kind kind, tt_dtype dtype);  // identity, 0-d
// Removes the dimensions named (each once, any order). NaN propagates through MAX and MIN.
TT_EXPORT tt_val tt_reduce(tt_builder* b, tt_reduce_kind kind, tt_val x, int ndims, const int64_t* dims);
// n operands of equal dims reduced together. body: args are n accumulators then n elements (0-d), results n.
TT_EXPORT void tt_reduce_many(tt_builder* b, int n, const tt_val* xs, const tt_val* inits, int ndims,
                              const int64_t* dims, tt_body body, void* ctx, tt_val* out_results);

// Arrays of length rank(x).
typedef struct tt_window {
  int64_t size[TT_MAX_RANK], stride[TT_MAX_RANK], base_dilation[TT_MAX_RANK], window_dilation[TT_MAX_RANK];
  int64_t pad_low[TT_MAX_RANK], pad_high[TT_MAX_RANK];
} tt_window;
TT_EXPORT tt_window tt_window_default(void);  // sizes, strides and dilations 1, padding 0
TT_EXPORT tt_val tt_reduce_window(tt_builder* b, tt_reduce_kind kind, tt_val x, const tt_window* window);
TT_EXPORT void tt_reduce_window_many(tt_builder* b, int n, const tt_val* xs, const tt_val* inits,
                                     const tt_window* window, tt_body body, void* ctx, tt_val* out_results);
// Scatters `source` to the window element that `select` (args a, b -> bool) keeps, adding up.
TT_EXPORT tt_val tt_select_and_scatter(tt_builder* b, tt_val x, tt_val source, tt_val init, const tt_window* window,
                                       tt_cmp select);
// less: args are (x0_left, x0_right, x1_left, ...), result one bool. Sorts along dim.
TT_EXPORT void tt_sort(tt_builder* b, int n, const tt_val* xs, int dim, bool stable, tt_body less, void* ctx,
                       tt_val* out_results);
// chlo.top_k over the last dimension: values and i32 indices, largest first.
TT_EXPORT void tt_top_k(tt_builder* b, tt_val x, int64_t k, tt_val* out_values, tt_val* out_indices);

// ---- gather and scatter -------------------------------------------------------------------------------------------------
typedef struct tt_gather_dims {
  int num_offset, num_collapsed, num_operand_batch, num_start_map;
  int64_t offset[TT_MAX_RANK];     // result dims that walk the slice (gather) / update window dims (scatter)
  int64_t collapsed[TT_MAX_RANK];  // collapsed slice dims (gather) / inserted window dims (scatter)
  int64_t operand_batch[TT_MAX_RANK], indices_batch[TT_MAX_RANK];
  int64_t start_map[TT_MAX_RANK];  // which operand dim each index component addresses
  int64_t index_vector_dim;
  bool sorted, unique;
} tt_gather_dims;
// Out-of-range starts are clamped by the specification; callers check indices (see ops/index.h).
TT_EXPORT tt_val tt_gather(tt_builder* b, tt_val x, tt_val indices, const tt_gather_dims* dims,
                           const int64_t* slice_sizes);
// body: args (old 0-d, update 0-d) -> new. Out-of-range updates are skipped by the specification.
TT_EXPORT tt_val tt_scatter(tt_builder* b, tt_val x, tt_val indices, tt_val updates, const tt_gather_dims* dims,
                            tt_body body, void* ctx);

// ---- control flow --------------------------------------------------------------------------------------------------------
// cond: args n -> one bool. body: args n -> n.
TT_EXPORT void tt_while(tt_builder* b, int n, const tt_val* inits, tt_body cond, tt_body body, void* ctx,
                        tt_val* out_results);
// Emits both branches; results n each. pred is a 0-d bool.
TT_EXPORT void tt_if(tt_builder* b, tt_val pred, int n, tt_body on_true, tt_body on_false, void* ctx,
                     tt_val* out_results);

// ---- special -------------------------------------------------------------------------------------------------------------
// Philox (Salmon et al. 2011): state u64[3] = {key, counter low, counter high}; bits of `type` (an unsigned dtype).
TT_EXPORT void tt_rng_bits(tt_builder* b, tt_val state, const tt_type* type, tt_val* out_state, tt_val* out_bits);
typedef enum tt_fft_kind { TT_FFT, TT_IFFT, TT_RFFT, TT_IRFFT } tt_fft_kind;
TT_EXPORT tt_val tt_fft(tt_builder* b, tt_fft_kind kind, tt_val x, int n, const int64_t* lengths);  // last n dims
TT_EXPORT tt_val tt_cholesky(tt_builder* b, tt_val a, bool lower);
// Solves op(a) x = b (left) or x op(a) = b; transpose: 0 no, 1 transpose, 2 adjoint.
TT_EXPORT tt_val tt_triangular_solve(tt_builder* b, tt_val a, tt_val rhs, bool left, bool lower, bool unit_diagonal,
                                     int transpose);
TT_EXPORT void tt_custom_call(tt_builder* b, const char* target, const char* backend_config, int n,
                              const tt_val* operands, int num_results, const tt_type* result_types,
                              tt_val* out_results);
// stablehlo.composite `name` (attributes: MLIR dictionary text, e.g. "{k = 3 : i64}") whose decomposition `body` builds.
TT_EXPORT void tt_composite(tt_builder* b, const char* name, const char* attributes, int n, const tt_val* operands,
                            tt_body body, void* ctx, int num_results, tt_val* out_results);
typedef enum tt_collective {
  TT_ALL_REDUCE,
  TT_ALL_GATHER,
  TT_REDUCE_SCATTER,
  TT_ALL_TO_ALL,
  TT_COLLECTIVE_BROADCAST
} tt_collective;

// ---- sugar: what lowerings mostly use -------------------------------------------------------------------------------------
// Binary operations that broadcast operands against each other by PyTorch's rule; dtypes must be equal already.
TT_EXPORT tt_val tt_bin(tt_builder* b, tt_prim prim, tt_val x, tt_val y);
TT_EXPORT tt_val tt_add(tt_builder* b, tt_val x, tt_val y);
TT_EXPORT tt_val tt_sub(tt_builder* b, tt_val x, tt_val y);
TT_EXPORT tt_val tt_mul(tt_builder* b, tt_val x, tt_val y);
TT_EXPORT tt_val tt_div(tt_builder* b, tt_val x, tt_val y);
TT_EXPORT tt_val tt_max(tt_builder* b, tt_val x, tt_val y);
TT_EXPORT tt_val tt_min(tt_builder* b, tt_val x, tt_val y);
TT_EXPORT tt_val tt_and(tt_builder* b, tt_val x, tt_val y);
TT_EXPORT tt_val tt_or(tt_builder* b, tt_val x, tt_val y);
TT_EXPORT tt_val tt_test(tt_builder* b, tt_cmp cmp, tt_val x, tt_val y);
TT_EXPORT tt_val tt_where(tt_builder* b, tt_val pred, tt_val on_true, tt_val on_false);
TT_EXPORT tt_val tt_neg(tt_builder* b, tt_val x);
TT_EXPORT tt_val tt_not(tt_builder* b, tt_val x);
// A constant of x's dtype, 0-d (it broadcasts).
TT_EXPORT tt_val tt_like_f(tt_builder* b, tt_val x, double value);
TT_EXPORT tt_val tt_like_i(tt_builder* b, tt_val x, int64_t value);
// x op constant of its own dtype.
TT_EXPORT tt_val tt_add_f(tt_builder* b, tt_val x, double value);
TT_EXPORT tt_val tt_mul_f(tt_builder* b, tt_val x, double value);
TT_EXPORT tt_val tt_test_f(tt_builder* b, tt_cmp cmp, tt_val x, double value);
// Trailing-dimension broadcast (PyTorch's expand) to the given dims.
TT_EXPORT tt_val tt_expand(tt_builder* b, tt_val x, int rank, const int64_t* dims);
TT_EXPORT tt_val tt_expand_like(tt_builder* b, tt_val x, tt_val like);
// Splat of `value` in x's type, or in the given dims with x's dtype.
TT_EXPORT tt_val tt_full_like(tt_builder* b, tt_val x, double value);
TT_EXPORT tt_val tt_zeros(tt_builder* b, tt_dtype dtype, int rank, const int64_t* dims);
TT_EXPORT tt_val tt_unsqueeze(tt_builder* b, tt_val x, int dim);  // dim may be negative, as in PyTorch
TT_EXPORT tt_val tt_squeeze(tt_builder* b, tt_val x, int dim);
TT_EXPORT tt_val tt_flatten(tt_builder* b, tt_val x);  // to 1-d
TT_EXPORT tt_val tt_swap_dims(tt_builder* b, tt_val x, int a, int c);
TT_EXPORT tt_val tt_permute(tt_builder* b, tt_val x, const int* perm);
// x[start:limit] along one dimension; x[index] along one dimension, dimension removed.
TT_EXPORT tt_val tt_slice_dim(tt_builder* b, tt_val x, int dim, int64_t start, int64_t limit, int64_t stride);
TT_EXPORT tt_val tt_index_dim(tt_builder* b, tt_val x, int dim, int64_t index);
// Pads one dimension with a constant of value `fill`.
TT_EXPORT tt_val tt_pad_dim(tt_builder* b, tt_val x, int dim, int64_t low, int64_t high, double fill);
// Reductions that keep the reduced dimensions as 1. ndims 0 means all.
TT_EXPORT tt_val tt_reduce_keep(tt_builder* b, tt_reduce_kind kind, tt_val x, int ndims, const int64_t* dims);
TT_EXPORT tt_val tt_sum_keep(tt_builder* b, tt_val x, int dim);
TT_EXPORT tt_val tt_max_keep(tt_builder* b, tt_val x, int dim);
// Inclusive scan along dim by log2(n) shifted steps; SUM, PROD, MAX, MIN.
TT_EXPORT tt_val tt_cumulative(tt_builder* b, tt_reduce_kind kind, tt_val x, int dim);
// Position (i32; i64 where that is too small) of the first largest/smallest element along dim, NaN counts as largest/smallest; dim removed.
TT_EXPORT tt_val tt_arg_reduce(tt_builder* b, bool largest, tt_val x, int dim, tt_val* out_values_or_null);
// 0, 1, ... along dim, in the shape of x.
TT_EXPORT tt_val tt_iota_like(tt_builder* b, tt_val x, tt_dtype dtype, int dim);
// Matrix product of [..., m, k] and [..., k, n] with equal leading dims.
TT_EXPORT tt_val tt_matmul(tt_builder* b, tt_val x, tt_val y);
TT_EXPORT tt_val tt_is_nan(tt_builder* b, tt_val x);
TT_EXPORT tt_val tt_is_inf(tt_builder* b, tt_val x);

#ifdef __cplusplus
}
#endif
#endif  // TT_HLO_H
