// SPDX-License-Identifier: Apache-2.0
//
// Reference counts and the ledger, from one thread and from several.
#include "base/obj.h"

#include "base/mem.h"
#include "base/thread.h"
#include "tt_test.h"

typedef struct thing {
  tt_obj obj;
  int* destroyed;
  void* child;
  int number;
} thing;

static void destroy_thing(void* obj) {
  thing* t = obj;
  if (t->destroyed != NULL) {
    ++*t->destroyed;
  }
  tt_obj_release(t->child);
  free(t);
}
TT_OBJ_KIND(thing_kind, "test thing", destroy_thing);

TEST(obj, lives_until_the_last_release) {
  int destroyed = 0;
  thing* t = tt_obj_create(&thing_kind, sizeof *t);
  EXPECT_EQ_INT(t->number, 0);
  t->destroyed = &destroyed;
  EXPECT_EQ_INT(tt_obj_refs(t), 1);
  tt_obj_retain(t);
  EXPECT_EQ_INT(tt_obj_refs(t), 2);
  tt_obj_release(t);
  EXPECT_EQ_INT(destroyed, 0);
  tt_obj_release(t);
  EXPECT_EQ_INT(destroyed, 1);
}

TEST(obj, retain_and_release_accept_null) {
  tt_obj_retain(NULL);
  tt_obj_release(NULL);
}

TEST(obj, a_parent_releases_its_child) {
  int destroyed = 0;
  thing* child = tt_obj_create(&thing_kind, sizeof *child);
  thing* parent = tt_obj_create(&thing_kind, sizeof *parent);
  child->destroyed = parent->destroyed = &destroyed;
  parent->child = child;
  tt_obj_release(parent);
  EXPECT_EQ_INT(destroyed, 2);
}

static void note_live(const char* name, int64_t live, void* ctx) {
  if (strcmp(name, "test thing") == 0) {
    *(int64_t*)ctx = live;
  }
}

TEST(obj, ledger_counts_by_kind) {
  int64_t before = tt_ledger_live(NULL, NULL);
  thing* a = tt_obj_create(&thing_kind, sizeof *a);
  thing* b = tt_obj_create(&thing_kind, sizeof *b);
  int64_t reported = 0;
  EXPECT_EQ_INT(tt_ledger_live(note_live, &reported), before + 2);
  EXPECT_EQ_INT(reported, 2);
  tt_obj_release(a);
  EXPECT_EQ_INT(tt_ledger_live(NULL, NULL), before + 1);
  tt_obj_release(b);
  reported = 0;
  EXPECT_EQ_INT(tt_ledger_live(note_live, &reported), before);
  EXPECT_EQ_INT(reported, 0);
}

enum { ROUNDS = 20000, WORKERS = 4 };

static void churn(void* arg) {
  for (int i = 0; i < ROUNDS; ++i) {
    tt_obj_retain(arg);
    tt_obj_release(tt_obj_create(&thing_kind, sizeof(thing)));
    tt_obj_release(arg);
  }
}

TEST(obj, counts_hold_under_threads) {
  int destroyed = 0;
  int64_t before = tt_ledger_live(NULL, NULL);
  thing* shared = tt_obj_create(&thing_kind, sizeof *shared);
  shared->destroyed = &destroyed;
  tt_pool* pool = tt_pool_create(WORKERS, "churn");
  for (int i = 0; i < WORKERS; ++i) {
    tt_pool_submit(pool, churn, shared);
  }
  tt_pool_destroy(pool);
  EXPECT_EQ_INT(tt_obj_refs(shared), 1);
  EXPECT_EQ_INT(tt_ledger_live(NULL, NULL), before + 1);
  tt_obj_release(shared);
  EXPECT_EQ_INT(destroyed, 1);
}

TEST(obj, using_an_object_without_references_is_a_bug) {
  thing dead = {
      .obj = {.refs = 0, .kind = &thing_kind}
  };
  EXPECT_ABORTS(tt_obj_retain(&dead));
  EXPECT_ABORTS(tt_obj_release(&dead));
}
