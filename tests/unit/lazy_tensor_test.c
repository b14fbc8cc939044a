// SPDX-License-Identifier: Apache-2.0
//
// Storages: addresses, finding one by address, resizing, and what is not written yet.
#include "lazy/tensor.h"

#include <pthread.h>

#include "run_support.h"

static const int64_t hundred = 100;

TEST(storage, addresses_are_unique_and_never_mapped) {
  begin();
  tensor a, b;
  make(&a, TT_F32, 1, &hundred, NULL);
  make(&b, TT_F32, 1, &hundred, NULL);
  EXPECT_TRUE(tt_storage_address(b.t.storage) >= tt_storage_address(a.t.storage) + 400);
  EXPECT_TRUE(tt_storage_address(a.t.storage) >= UINT64_C(1) << 57);
  EXPECT_TRUE(tt_storage_address(a.t.storage) % 256 == 0);
  drop(&a);
  drop(&b);
  end();
}

TEST(storage, is_found_by_an_address_inside) {
  begin();
  tensor a, b;
  make(&a, TT_F32, 1, &hundred, NULL);
  make(&b, TT_F32, 1, &hundred, NULL);
  uint64_t address = tt_storage_address(a.t.storage);
  tt_storage* found = tt_storage_find(address + 396);
  EXPECT_TRUE(found == a.t.storage);
  tt_storage_release(found);
  EXPECT_TRUE(tt_storage_find(16) == NULL);
  drop(&a);
  EXPECT_TRUE(tt_storage_find(address) == NULL);
  drop(&b);
  end();
}

TEST(storage, takes_no_memory_before_it_is_written) {
  begin();
  EXPECT_EQ_INT(tt_device_count(), 1);
  int64_t before = fake()->bytes_in_use();
  int64_t n = 1 << 16;
  tensor a;
  make(&a, TT_F32, 1, &n, NULL);
  EXPECT_EQ_INT(fake()->bytes_in_use(), before);
  EXPECT_TRUE(!tt_storage_is_written(a.t.storage));
  EXPECT_OK(fill(&a, 1));
  EXPECT_TRUE(tt_storage_is_written(a.t.storage));
  EXPECT_TRUE(fake()->bytes_in_use() >= before + (4 << 16));
  drop(&a);
  end();
}

TEST(storage, never_written_reads_as_zero) {
  begin();
  tensor a;
  make_f32(&a, 3, NULL);
  EXPECT_F32(&a, 3, 0, 0, 0);
  drop(&a);
  end();
}

TEST(storage, keeps_its_start_when_resized) {
  begin();
  tensor a, longer, shorter;
  int64_t one = 1;
  make_f32(&a, 3, (const float[]){1, 2, 3});
  EXPECT_OK(tt_storage_resize(a.t.storage, 20));
  EXPECT_EQ_INT(tt_storage_bytes(a.t.storage), 20);
  view(&longer, &a, 1, (const int64_t[]){5}, &one, 0);
  EXPECT_F32(&longer, 5, 1, 2, 3, 0, 0);
  EXPECT_OK(tt_storage_resize(a.t.storage, 8));
  view(&shorter, &a, 1, (const int64_t[]){2}, &one, 0);
  EXPECT_F32(&shorter, 2, 1, 2);
  EXPECT_OK(tt_storage_resize(a.t.storage, 0));
  EXPECT_EQ_INT(tt_storage_bytes(a.t.storage), 0);
  drop(&a);
  end();
}

TEST(storage, of_more_dimensions_than_a_type_has_is_one_row) {
  int64_t ones[TT_MAX_RANK + 1];
  tt_storage* storage = NULL;
  for (int d = 0; d <= TT_MAX_RANK; ++d) {
    ones[d] = 1;
  }
  EXPECT_OK(tt_storage_create(0, TT_F32, TT_MAX_RANK + 1, ones, ones, 4, &storage));
  EXPECT_EQ_INT(storage->type.rank, 1);
  EXPECT_EQ_INT(storage->type.dims[0], 1);
  tt_storage_release(storage);
}

static void* make_and_find(void* arg) {
  bool* good = arg;
  int64_t n = 8;
  tt_type type = tt_type_make(TT_F32, 1, &n);
  for (int i = 0; i < 200; ++i) {
    tt_storage* storage = tt_storage_new(0, &type, 32);
    tt_storage* found = tt_storage_find(tt_storage_address(storage) + 8);
    *good = *good && found == storage;
    tt_storage_release(found);
    tt_storage_release(storage);
  }
  return NULL;
}

TEST(storage, threads_make_and_find_their_own) {
  pthread_t threads[4];
  bool good[4] = {true, true, true, true};
  for (int i = 0; i < 4; ++i) {
    REQUIRE_TRUE(pthread_create(&threads[i], NULL, make_and_find, &good[i]) == 0);
  }
  for (int i = 0; i < 4; ++i) {
    (void)pthread_join(threads[i], NULL);
    EXPECT_TRUE(good[i]);
  }
}

static void* resize_often(void* arg) {
  tt_storage* storage = arg;
  for (int64_t i = 1; i <= 100; ++i) {
    EXPECT_OK(tt_storage_resize(storage, 4 * i));
  }
  return NULL;
}

TEST(storage, is_found_while_it_is_resized) {
  begin();
  tensor a, b;
  pthread_t thread;
  make_f32(&a, 3, NULL);
  make_f32(&b, 3, NULL);
  REQUIRE_TRUE(pthread_create(&thread, NULL, resize_often, b.t.storage) == 0);
  for (int i = 0; i < 100; ++i) {
    tt_storage* found = tt_storage_find(tt_storage_address(a.t.storage));
    EXPECT_TRUE(found == a.t.storage);
    tt_storage_release(found);
  }
  (void)pthread_join(thread, NULL);
  EXPECT_EQ_INT(tt_storage_bytes(b.t.storage), 400);
  drop(&a);
  drop(&b);
  end();
}
