// SPDX-License-Identifier: Apache-2.0
//
// The op table. An op is one entry in one place: its functional schema, as PyTorch writes it, and its lowering.
//
//   TT_ROW(exp, "exp(Tensor self) -> Tensor", TT_INT_TO_FLOAT, TT_EXP)          no code: promotion class and primitive
//   TT_OP(addmm, "addmm(Tensor self, Tensor mat1, ...) -> Tensor") { ... }       a block: the body is the lowering
//   TT_COMPOSITE(stack, "stack(Tensor[] tensors, int dim=0) -> Tensor", "why")   PyTorch's own kernel, captured as one program
//   TT_FALLBACK(eig, "linalg_eig(...) -> ...", "no StableHLO form")              runs on the CPU; the reason is shown to users
//
// In-place and out= overloads are found in PyTorch's registry and use the same entry; the framework writes results back.
// The body has `L` (this call) and `b` (the builder). Arguments are named by their place in the schema, counting from 0.
// Output shapes and dtypes are PyTorch's own (Meta kernels): read them by tt_out_type. A result is converted to the
// output's dtype by tt_out; its dims must agree (size-1 and missing leading dims are expanded).
//
// Values: a number asked for by tt_arg_scalar becomes a run-time input (no recompile when it changes); one asked for by
// tt_arg_int/float/bool/ints is baked in, and part of the call's key.
// Thread rule: lowerings run on any thread, each with its own L and b; they keep no state.
#ifndef TT_OPS_OP_H
#define TT_OPS_OP_H

#include "tt/call.h"
#include "tt/hlo.h"

typedef struct tt_lower tt_lower;
typedef void (*tt_lower_fn)(tt_lower* L, tt_builder* b);

struct tt_op {
  const char* schema;
  tt_lower_fn lower;
  tt_route route;
  const char* note;
  const char* file;
};

#define TT_OP_ENTRY(id, schema_text, fn, route_id, note_text)                            \
  static const tt_op op_##id = {(schema_text), (fn), (route_id), (note_text), __FILE__}; \
  static const tt_op* const op_entry_##id __attribute__((used, section("tt_ops"))) = &op_##id

#define TT_OP(id, schema_text)                                     \
  static void lower_##id(tt_lower* L, tt_builder* b);              \
  TT_OP_ENTRY(id, schema_text, lower_##id, TT_ROUTE_LOWERING, ""); \
  static void lower_##id(__attribute__((unused)) tt_lower* L, __attribute__((unused)) tt_builder* b)
#define TT_COMPOSITE(id, schema_text, why) TT_OP_ENTRY(id, schema_text, NULL, TT_ROUTE_COMPOSITE, why)
#define TT_FALLBACK(id, schema_text, why) TT_OP_ENTRY(id, schema_text, NULL, TT_ROUTE_FALLBACK, why)

// ---- arguments ------------------------------------------------------------------------------------------------------------
// A tensor argument as a value of its logical sizes and dtype. Out of place or absent: TT_POISON and a sticky error.
tt_val tt_arg(tt_lower* L, int i);
// The same, converted to `dtype` (host scalars arrive in it directly).
tt_val tt_arg_as(tt_lower* L, int i, tt_dtype dtype);
bool tt_arg_has(const tt_lower* L, int i);    // not None (for a tensor: present)
int tt_arg_count(const tt_lower* L, int i);   // length of a list argument
tt_val tt_arg_at(tt_lower* L, int i, int j);  // element j of a tensor list
bool tt_arg_has_at(const tt_lower* L, int i, int j);
// The tensor's description, without emitting anything; NULL if absent. Sizes, strides, dtype, wrapped.
const tt_tensor* tt_arg_info(const tt_lower* L, int i);
const tt_tensor* tt_arg_info_at(const tt_lower* L, int i, int j);

// A Scalar/float/int/bool argument (or element j of a Scalar[]/float[]) as a 0-d value of `dtype`.
tt_val tt_arg_scalar(tt_lower* L, int i, tt_dtype dtype);
tt_val tt_arg_scalar_at(tt_lower* L, int i, int j, tt_dtype dtype);
int64_t tt_arg_int(tt_lower* L, int i);
int64_t tt_arg_int_or(tt_lower* L, int i, int64_t value);  // `value` if None
double tt_arg_float(tt_lower* L, int i);
double tt_arg_float_or(tt_lower* L, int i, double value);
bool tt_arg_bool(tt_lower* L, int i);
const int64_t* tt_arg_ints(tt_lower* L, int i,
                           int* out_count);  // int[]; a single int counts as a list of one; None: NULL, 0
const double* tt_arg_floats(tt_lower* L, int i, int* out_count);
const char* tt_arg_string(tt_lower* L, int i);                 // "" if None
tt_dtype tt_arg_dtype_or(tt_lower* L, int i, tt_dtype value);  // a ScalarType argument, `value` if None
char tt_arg_number_class(const tt_lower* L, int i);            // of a Scalar: 'b', 'i', 'f', 'c'
char tt_arg_number_class_at(const tt_lower* L, int i, int j);  // of element j of a Scalar[]

// ---- results ----------------------------------------------------------------------------------------------------------------
int tt_out_count(const tt_lower* L);
// Output k's dtype and sizes as PyTorch says; an absent output has an invalid dtype.
const tt_type* tt_out_type(const tt_lower* L, int k);
bool tt_out_wanted(const tt_lower* L, int k);
void tt_out(tt_lower* L, int k, tt_val value);
// Writes to a tensor argument that the op changes besides its outputs (running statistics, foreach and fused optimizers).
// In-place and out= overloads need none of this. The value is converted to the argument's dtype.
void tt_write(tt_lower* L, int i, tt_val value);
void tt_write_at(tt_lower* L, int i, int j, tt_val value);
// A call this entry cannot serve: raises NotImplementedError with the op's name in front.
void tt_unsupported(tt_lower* L, const char* fmt, ...) TT_PRINTF(2, 3);
tt_builder* tt_lower_builder(tt_lower* L);

// ---- type promotion -----------------------------------------------------------------------------------------------------------
// PyTorch's result type (torch.result_type) of the given tensor/Scalar arguments: dimensioned tensors, then 0-d, then numbers.
tt_dtype tt_common_dtype(const tt_lower* L, int n, const int* args);
tt_dtype tt_common_dtype2(const tt_lower* L, int i, int j);
tt_dtype tt_promote_dtypes(tt_dtype a, tt_dtype c);  // torch.promote_types
tt_dtype tt_default_float(const tt_lower* L,
                          tt_dtype dtype);  // integers and bool: torch.get_default_dtype(); others themselves

typedef enum tt_promotion {
  TT_SAME,          // computes in the common dtype (16-bit floats in f32), result as PyTorch says
  TT_INT_TO_FLOAT,  // integers and bool compute as the default float dtype
  TT_NO_COMPUTE,    // computes in the common dtype exactly as it is (abs, neg, sign, max, bit operations)
} tt_promotion;
// Row lowerings: arguments 0 (and 1), result output 0.
void tt_row_unary(tt_lower* L, tt_builder* b, tt_promotion promotion, tt_prim prim);
void tt_row_binary(tt_lower* L, tt_builder* b, tt_promotion promotion, tt_prim prim);
void tt_row_compare(tt_lower* L, tt_builder* b, tt_cmp cmp);
#define TT_ROW_(id, schema_text, call_text)            \
  static void lower_##id(tt_lower* L, tt_builder* b) { \
    call_text;                                         \
  }                                                    \
  TT_OP_ENTRY(id, schema_text, lower_##id, TT_ROUTE_LOWERING, "")
#define TT_ROW(id, schema_text, promotion, prim) TT_ROW_(id, schema_text, tt_row_unary(L, b, promotion, prim))
#define TT_ROW2(id, schema_text, promotion, prim) TT_ROW_(id, schema_text, tt_row_binary(L, b, promotion, prim))
#define TT_ROW_CMP(id, schema_text, cmp) TT_ROW_(id, schema_text, tt_row_compare(L, b, cmp))
// For blocks in the same style: the dtype to compute in, and an argument in it.
tt_dtype tt_compute_dtype(const tt_lower* L, tt_promotion promotion, int n, const int* args);

// ---- dimensions -----------------------------------------------------------------------------------------------------------------
int tt_wrap_dim(int64_t dim, int rank);  // negative counts from the end; rank 0 counts as 1
// Dims of an int[] argument, wrapped; none or empty means all. Returns their number.
int tt_arg_dims(tt_lower* L, int i, int rank, int64_t out_dims[TT_MAX_RANK]);

// ---- random numbers and index checks --------------------------------------------------------------------------------------------
// Random bits of an unsigned type; the generator's offset advances by what is used. Same seed, same numbers.
tt_val tt_random_bits(tt_lower* L, const tt_type* type);
// Uniform in [0, 1) with all mantissa bits of F32 or F64; standard normal.
tt_val tt_random_uniform(tt_lower* L, tt_dtype dtype, int rank, const int64_t* dims);
tt_val tt_random_normal(tt_lower* L, tt_dtype dtype, int rank, const int64_t* dims);
// Checks that each element of the integer value `index` is in [-size, size) (or [0, size) if !wrap), records a failure for the
// next host read, and returns the index as i64 or i32 wrapped into [0, size) and clamped, safe for gather.
tt_val tt_check_index(tt_lower* L, tt_val index, int64_t size, bool wrap);
// The same for writing: an index out of range becomes -1, which scatter leaves out, so that nothing else is overwritten.
tt_val tt_check_place(tt_lower* L, tt_val index, int64_t size, bool wrap);

#endif  // TT_OPS_OP_H
