// SPDX-License-Identifier: Apache-2.0
//
// Generators: a seed and an offset into Philox's counter.
#include "run/generator.h"
#include "base/mem.h"
#include "base/obj.h"
#include "base/thread.h"

struct tt_generator {
  tt_obj obj;
  tt_mutex lock;
  uint64_t seed, offset;
};

static void destroy_generator(void* obj) {
  tt_generator* generator = obj;
  tt_mutex_deinit(&generator->lock);
  free(generator);
}
TT_OBJ_KIND(generator_kind, "generator", destroy_generator);

tt_generator* tt_generator_create(uint64_t seed) {
  tt_generator* generator = tt_obj_create(&generator_kind, sizeof *generator);
  tt_mutex_init(&generator->lock);
  generator->seed = seed;
  return generator;
}
void tt_generator_retain(tt_generator* generator) {
  tt_obj_retain(generator);
}
void tt_generator_release(tt_generator* generator) {
  tt_obj_release(generator);
}

void tt_generator_set(tt_generator* generator, uint64_t seed, uint64_t offset) {
  tt_mutex_lock(&generator->lock);
  generator->seed = seed;
  generator->offset = offset;
  tt_mutex_unlock(&generator->lock);
}

void tt_generator_get(tt_generator* generator, uint64_t* out_seed, uint64_t* out_offset) {
  tt_generator_advance(generator, 0, out_seed, out_offset);
}

void tt_generator_advance(tt_generator* generator, uint64_t steps, uint64_t* out_seed, uint64_t* out_offset) {
  tt_mutex_lock(&generator->lock);
  *out_seed = generator->seed;
  *out_offset = generator->offset;
  generator->offset += steps;
  tt_mutex_unlock(&generator->lock);
}

// The default generators live as long as the process; PyTorch's default seed.
enum { MAX_DEFAULTS = 64 };
static const uint64_t default_seed = 67280421310721;
static struct tt_generator defaults[MAX_DEFAULTS];
static pthread_once_t defaults_once = PTHREAD_ONCE_INIT;

static void init_defaults(void) {
  for (int i = 0; i < MAX_DEFAULTS; ++i) {
    atomic_store(&defaults[i].obj.refs, 1);
    defaults[i].obj.kind = &generator_kind;
    tt_mutex_init(&defaults[i].lock);
    defaults[i].seed = default_seed;
  }
}

tt_generator* tt_device_generator(int index) {
  pthread_once(&defaults_once, init_defaults);
  return index >= 0 && index < MAX_DEFAULTS ? &defaults[index] : NULL;
}
