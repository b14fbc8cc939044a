// SPDX-License-Identifier: Apache-2.0
//
// Programs for C callers: arguments are checked, and what the plugin says arrives.
#include "run_support.h"
#include "tt/hlo.h"
#include "tt/program.h"

static const int64_t three = 3;

static char* double_text(void) {
  tt_builder* b = tt_builder_create();
  tt_type type = tt_type_make(TT_F32, 1, &three);
  tt_val x = tt_param(b, &type);
  tt_val y = tt_add(b, x, x);
  char* text = NULL;
  EXPECT_OK(tt_builder_finish(b, "twice", 1, &y, &text));
  tt_builder_destroy(b);
  return text;
}

TEST(api, a_program_runs_on_host_arrays) {
  begin();
  float in[3] = {1, 2, 3};
  float out[3] = {0, 0, 0};
  tt_type type = tt_type_make(TT_F32, 1, &three);
  tt_program* program = NULL;
  char* text = double_text();
  REQUIRE_OK(tt_program_compile(0, text, &program));
  EXPECT_EQ_INT(tt_program_output_count(program), 1);
  tt_array input = {type, in};
  tt_array output = {type, out};
  EXPECT_OK(tt_program_run(program, 1, &input, 1, &output));
  EXPECT_TRUE(out[0] == 2 && out[1] == 4 && out[2] == 6);
  free(text);
  tt_program_release(program);
  end();
}

TEST(api, wrong_arguments_are_named) {
  begin();
  float in[4] = {1, 2, 3, 4};
  float out[4] = {9, 9, 9, 9};
  int64_t four = 4;
  tt_program* program = NULL;
  char* text = double_text();
  EXPECT_STATUS(tt_program_compile(0, NULL, &program), TT_INVALID_ARGUMENT, "expected StableHLO text, got NULL");
  EXPECT_STATUS(tt_program_compile(5, text, &program), TT_INVALID_ARGUMENT, "device index below 1, got 5");
  EXPECT_STATUS(tt_program_compile(0, "nonsense", &program), TT_INVALID_ARGUMENT, "cannot compile: expected module");
  REQUIRE_OK(tt_program_compile(0, text, &program));
  tt_array good = {tt_type_make(TT_F32, 1, &three), in};
  tt_array wide = {tt_type_make(TT_F32, 1, &four), in};
  tt_array result = {tt_type_make(TT_F32, 1, &three), out};
  tt_array wrong = {tt_type_make(TT_F32, 1, &four), out};
  tt_array none = {tt_type_make(TT_F32, 1, &three), NULL};
  tt_array unknown = {.bytes = in};
  EXPECT_STATUS(tt_program_run(program, 1, &wide, 1, &result), TT_INVALID_ARGUMENT, "another type");
  EXPECT_STATUS(tt_program_run(program, 1, &good, 1, &wrong), TT_INVALID_ARGUMENT,
                "expected output 0 to be f32[4], got f32[3]");
  EXPECT_STATUS(tt_program_run(program, 1, &none, 1, &result), TT_INVALID_ARGUMENT, "got NULL");
  EXPECT_STATUS(tt_program_run(program, 1, &unknown, 1, &result), TT_INVALID_ARGUMENT, "of a known element type");
  EXPECT_STATUS(tt_program_run(program, 1, &good, 2, (tt_array[]){result, result}), TT_INVALID_ARGUMENT, "output");
  EXPECT_TRUE(out[0] == 9);  // nothing was written
  free(text);
  tt_program_release(program);
  end();
}

TEST(api, a_failure_at_run_time_arrives) {
  begin();
  float in[3] = {1, 2, 3};
  float out[3] = {9, 9, 9};
  tt_program* program = NULL;
  char* text = double_text();
  REQUIRE_OK(tt_program_compile(0, text, &program));
  tt_array input = {tt_type_make(TT_F32, 1, &three), in};
  tt_array output = {tt_type_make(TT_F32, 1, &three), out};
  fake()->fail_later(1, TT_INTERNAL, "the chip hiccuped");
  EXPECT_STATUS(tt_program_run(program, 1, &input, 1, &output), TT_INTERNAL, "the chip hiccuped");
  EXPECT_TRUE(out[0] == 9);
  fake()->memory_limit(16);
  EXPECT_STATUS(tt_program_run(program, 1, &input, 1, &output), TT_RESOURCE_EXHAUSTED, "out of memory");
  fake()->memory_limit(0);
  EXPECT_OK(tt_program_run(program, 1, &input, 1, &output));
  EXPECT_TRUE(out[0] == 2);
  free(text);
  tt_program_release(program);
  end();
}

static void count_figure(const char* name, double value, void* ctx) {
  *(int*)ctx += strcmp(name, "operations") == 0 && value >= 1;
}

TEST(api, a_machine_that_is_not_here_is_analysed) {
  begin();
  tt_program_report report;
  int figures = 0;
  char* text = double_text();
  EXPECT_OK(tt_program_analyze(TT_FAKE_PLUGIN, "fake:2x2", text, &report, count_figure, &figures));
  EXPECT_EQ_INT(report.device_count, 4);
  EXPECT_EQ_INT(report.argument_bytes, 12);
  EXPECT_EQ_INT(report.output_bytes, 12);
  EXPECT_EQ_INT(figures, 1);
  EXPECT_STATUS(tt_program_analyze(TT_FAKE_PLUGIN, "nowhere", text, &report, NULL, NULL), TT_INVALID_ARGUMENT,
                "nowhere");
  EXPECT_STATUS(tt_program_analyze("/nowhere.so", "fake:2x2", text, &report, NULL, NULL), TT_NOT_FOUND, "/nowhere.so");
  free(text);
  end();
}
