// SPDX-License-Identifier: Apache-2.0
//
// Whichever call of the plugin fails, the n-th of any kind: nothing crashes or leaks, no wrong number is read, and work goes on.
#include "run/device.h"
#include "run_support.h"

static const float one_two_three[3] = {1, 2, 3};

// Reading either fails or gives the right numbers.
static void read_or_fail(const tensor* t, int n, const float* want) {
  float got[8] = {0};
  tt_status status = t->t.storage != NULL ? tt_copy_to_host(&t->t, got) : NULL;
  if (status == NULL && t->t.storage != NULL) {
    for (int i = 0; i < n; ++i) {
      EXPECT_TRUE(got[i] == want[i]);
    }
  }
  tt_status_free(status);
}

// Some of everything.
static void work(void) {
  tensor x, y, sum, column, matrix, index, looked, copy;
  tt_device* device = NULL;
  tt_marker* marker = NULL;
  float got[3] = {0, 0, 0};
  tt_status_free(tt_device_get(0, &device));
  describe(&x, NULL, TT_F32, 1, (const int64_t[]){3}, NULL, 0);
  describe(&y, NULL, TT_F32, 1, (const int64_t[]){3}, NULL, 0);
  describe(&copy, NULL, TT_F32, 1, (const int64_t[]){3}, NULL, 0);
  describe(&matrix, NULL, TT_F32, 2, (const int64_t[]){2, 3}, NULL, 0);
  describe(&index, NULL, TT_I64, 1, (const int64_t[]){2}, NULL, 0);
  tensor* all[] = {&x, &y, &copy, &matrix, &index};
  bool good[5] = {false};
  const int64_t two_zero[2] = {2, 0};
  for (int i = 0; i < 5; ++i) {
    tt_type type = tt_type_make(all[i]->t.dtype, all[i]->t.rank, all[i]->sizes);
    EXPECT_OK(tt_storage_create(0, type.dtype, type.rank, all[i]->sizes, all[i]->strides, tt_type_bytes(&type),
                                &all[i]->t.storage));
    const float six[6] = {1, 2, 3, 4, 5, 6};
    tt_status status =
        tt_copy_from_host(&all[i]->t, i == 4 ? (const void*)two_zero : (const void*)(i == 3 ? six : one_two_three));
    good[i] = status == NULL;
    tt_status_free(status);
  }
  tt_status status = add(&x, &y, 2, &sum);
  if (status == NULL && good[0] && good[1]) {
    read_or_fail(&sum, 3, (const float[]){3, 6, 9});
  }
  if (status == NULL) {
    tt_status_free(tt_copy_to_host_async(&sum.t, got, &marker));
    drop(&sum);
  }
  tt_status_free(status);
  view(&column, &matrix, 1, (const int64_t[]){2}, (const int64_t[]){3}, 1);
  status = fill(&column, 9);
  // In debug mode the call may have run, and only waiting for it failed.
  bool known = tt_mode_get() != TT_MODE_DEBUG || status == NULL;
  if (good[3] && known) {
    read_or_fail(&matrix, 6, status == NULL ? (const float[]){1, 9, 3, 4, 9, 6} : (const float[]){1, 2, 3, 4, 5, 6});
  }
  tt_status_free(status);
  status = take(&x, &index, &looked);
  if (status == NULL) {
    if (good[0] && good[4]) {
      read_or_fail(&looked, 2, (const float[]){3, 1});
    }
    drop(&looked);
  }
  tt_status_free(status);
  status = tt_copy_on_device(&copy.t, &x.t);
  bool shared = status == NULL;
  tt_status_free(status);
  status = add_in_place(&x, &y, 1);
  known = tt_mode_get() != TT_MODE_DEBUG || status == NULL;
  if (good[0] && good[1] && known) {
    read_or_fail(&x, 3, status == NULL ? (const float[]){2, 4, 6} : one_two_three);
  }
  if (good[0] && shared) {
    read_or_fail(&copy, 3, one_two_three);  // not changed with x
  }
  tt_status_free(status);
  tt_status_free(tt_storage_resize(y.t.storage, 24));
  if (device != NULL) {
    tt_marker* here = NULL;
    status = tt_marker_create(device, &here);
    if (status == NULL) {
      tt_status_free(tt_marker_await(here));
      tt_marker_destroy(here);
    }
    tt_status_free(status);
    tt_status_free(tt_device_synchronize(device));
  }
  if (marker != NULL) {
    tt_status_free(tt_marker_await(marker));
    tt_marker_destroy(marker);
  }
  for (int i = 0; i < 5; ++i) {
    drop(all[i]);
  }
}

static void expect_well(void) {
  tensor x, z;
  make_f32(&x, 3, one_two_three);
  EXPECT_OK(add(&x, &x, 1, &z));
  EXPECT_F32(&z, 3, 2, 4, 6);
  drop(&x);
  drop(&z);
}

static void sweep(tt_mode mode) {
  // Destroying things cannot fail: what a plugin then keeps is its own.
  static const char* const functions[] = {
      "PJRT_Client_BufferFromHostBuffer",
      "PJRT_Client_Compile",
      "PJRT_LoadedExecutable_GetExecutable",
      "PJRT_LoadedExecutable_Execute",
      "PJRT_Executable_NumOutputs",
      "PJRT_Executable_OutputElementTypes",
      "PJRT_Executable_OutputDimensions",
      "PJRT_Executable_GetCompiledMemoryStats",
      "PJRT_Buffer_IsDeleted",
      "PJRT_Buffer_ReadyEvent",
      "PJRT_Buffer_ToHostBuffer",
      "PJRT_Event_Await",
      "PJRT_Event_IsReady",
      "PJRT_Event_OnReady",
      "PJRT_Device_MemoryStats",
  };
  for (size_t f = 0; f < sizeof functions / sizeof *functions; ++f) {
    for (int nth = 1; nth <= 40 && tt_test_failures == 0; ++nth) {
      begin();
      EXPECT_OK(tt_mode_set(mode));
      fake()->fail(functions[f], nth, TT_INTERNAL, "swept away");
      work();
      bool came = fake()->calls(functions[f]) >= nth;
      fake()->fail(functions[f], 0, TT_OK, "");
      expect_well();
      end();
      if (tt_test_failures > 0) {
        (void)printf("  when call %d of %s failed\n", nth, functions[f]);
      }
      if (!came) {
        break;
      }
    }
  }
}

TEST(run, any_call_of_the_plugin_may_fail) {
  sweep(TT_MODE_STRICT);
}
TEST(run, any_call_of_the_plugin_may_fail_in_debug_mode) {
  sweep(TT_MODE_DEBUG);
}
TEST(run, any_call_of_the_plugin_may_fail_in_fused_mode) {
  sweep(TT_MODE_FUSED);
}

// The same for launches that fail after they were queued, where later reads must say so.
TEST(run, any_launch_may_fail_later) {
  for (int nth = 1; nth <= 20 && tt_test_failures == 0; ++nth) {
    begin();
    fake()->fail_later(nth, TT_INTERNAL, "swept away");
    work();
    fake()->fail_later(0, TT_OK, "");
    expect_well();
    end();
  }
}

// And for memory that runs out at any point.
TEST(run, memory_may_run_out_anywhere) {
  for (int64_t limit = 4; limit <= 400 && tt_test_failures == 0; limit += 4) {
    begin();
    fake()->memory_limit(limit);
    work();
    fake()->memory_limit(0);
    expect_well();
    end();
  }
}
