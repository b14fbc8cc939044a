// SPDX-License-Identifier: Apache-2.0
//
// The Python module torch_tpu._C: plain functions for python/torch_tpu. Importing it registers the device with PyTorch and
// starts nothing.
#include <c10/core/impl/VirtualGuardImpl.h>
#include <torch/csrc/Exceptions.h>
#include <torch/csrc/Generator.h>

#include "gil.h"
#include "graph.h"
#include "process_group.h"
#include "python.h"
#include "shim.h"
#include "tt/explain.h"

namespace tt {
namespace {

PyObject* none() {
  Py_RETURN_NONE;
}

// A dict entry; takes the reference to `value`.
void put(PyObject* dict, const char* key, PyObject* value) {
  if (value == nullptr || PyDict_SetItemString(dict, key, value) != 0) {
    Py_XDECREF(value);
    Py_DECREF(dict);
    throw python_error();
  }
  Py_DECREF(value);
}
PyObject* number(int64_t value) {
  return PyLong_FromLongLong(value);
}
PyObject* text(const char* value) {
  return value != nullptr ? PyUnicode_FromString(value) : none();
}

int64_t to_int(PyObject* arg) {
  const int64_t value = PyLong_AsLongLong(arg);
  if (value == -1 && PyErr_Occurred() != nullptr) {
    throw python_error();
  }
  return value;
}

tt_device* device_at(int64_t index) {
  tt_device* device = nullptr;
  check(tt_device_get(static_cast<int>(index < 0 ? current_device() : index), &device));
  return device;
}

// ---- runtime ------------------------------------------------------------------------------------------------------------------
PyObject* available(PyObject*, PyObject*) {
  bool answer = false;
  {
    const NoGil no_gil;
    answer = tt_runtime_available();
  }
  return PyBool_FromLong(answer);
}
PyObject* started(PyObject*, PyObject*) {
  return PyBool_FromLong(tt_runtime_started());
}
PyObject* in_bad_fork(PyObject*, PyObject*) {
  return PyBool_FromLong(tt_runtime_in_bad_fork());
}

PyObject* start(PyObject*, PyObject*) {
  HANDLE_TH_ERRORS {
    const NoGil no_gil;
    check(tt_runtime_start());
  }
  return none();
  END_HANDLE_TH_ERRORS
}

PyObject* plugin_path(PyObject*, PyObject*) {
  HANDLE_TH_ERRORS
  const char* path = nullptr;
  {
    const NoGil no_gil;
    check(tt_runtime_plugin_path(&path));
  }
  return text(path);
  END_HANDLE_TH_ERRORS
}

PyObject* describe_runtime(PyObject*, PyObject*) {
  HANDLE_TH_ERRORS
  tt_runtime_info info;
  {
    const NoGil no_gil;
    check(tt_runtime_describe(&info));
  }
  PyObject* const dict = PyDict_New();
  put(dict, "plugin_path", text(info.plugin_path));
  put(dict, "platform", text(info.platform));
  put(dict, "platform_version", text(info.platform_version));
  put(dict, "device_kind", text(info.device_kind));
  put(dict, "api_major", number(info.api_major));
  put(dict, "api_minor", number(info.api_minor));
  put(dict, "device_count", number(info.device_count));
  put(dict, "stand_in", PyBool_FromLong(info.stand_in));
  return dict;
  END_HANDLE_TH_ERRORS
}

// ---- devices ------------------------------------------------------------------------------------------------------------------
PyObject* device_count(PyObject*, PyObject*) {
  int count = 0;
  {
    const NoGil no_gil;
    count = tt_device_count();
  }
  return PyLong_FromLong(count);
}
PyObject* get_device(PyObject*, PyObject*) {
  return PyLong_FromLong(current_device());
}

// Makes a device the current one and returns the one before; a negative index changes nothing.
PyObject* exchange_device(PyObject*, PyObject* arg) {
  HANDLE_TH_ERRORS
  const int64_t index = to_int(arg);
  const int before = current_device();
  {
    const NoGil no_gil;
    c10::impl::VirtualGuardImpl(kTpu).setDevice({kTpu, static_cast<c10::DeviceIndex>(index)});
  }
  return PyLong_FromLong(before);
  END_HANDLE_TH_ERRORS
}

PyObject* synchronize(PyObject*, PyObject* arg) {
  HANDLE_TH_ERRORS
  const int64_t index = to_int(arg);
  {
    const NoGil no_gil;
    c10::impl::VirtualGuardImpl(kTpu).synchronizeDevice(static_cast<c10::DeviceIndex>(index));
  }
  return none();
  END_HANDLE_TH_ERRORS
}

PyObject* mem_get_info(PyObject*, PyObject* arg) {
  HANDLE_TH_ERRORS
  const int64_t index = to_int(arg);
  int64_t free = 0, total = 0;
  {
    const NoGil no_gil;
    check(tt_device_memory(device_at(index), &free, &total));
  }
  return Py_BuildValue("LL", static_cast<long long>(free), static_cast<long long>(total));
  END_HANDLE_TH_ERRORS
}

PyObject* default_generator_of(PyObject*, PyObject* arg) {
  HANDLE_TH_ERRORS
  return THPGenerator_Wrap(default_generator(static_cast<int>(to_int(arg))));
  END_HANDLE_TH_ERRORS
}

// Seeds all default generators: there is one for each device a host may have, whether or not the runtime has started.
PyObject* seed_all(PyObject*, PyObject* arg) {
  HANDLE_TH_ERRORS
  const uint64_t seed = PyLong_AsUnsignedLongLong(arg);
  if (PyErr_Occurred() != nullptr) {
    throw python_error();
  }
  tt_generator* generator = nullptr;
  for (int i = 0; (generator = tt_device_generator(i)) != nullptr; ++i) {
    tt_generator_set(generator, seed, 0);
  }
  return none();
  END_HANDLE_TH_ERRORS
}

PyObject* pinned(PyObject*, PyObject* arg) {
  HANDLE_TH_ERRORS
  return PyBool_FromLong(is_pinned(reinterpret_cast<const void*>(to_int(arg))));
  END_HANDLE_TH_ERRORS
}

// ---- modes --------------------------------------------------------------------------------------------------------------------
PyObject* mode_get(PyObject*, PyObject*) {
  return PyLong_FromLong(tt_mode_get());
}
PyObject* flush(PyObject*, PyObject*) {
  HANDLE_TH_ERRORS {
    NoGil no_gil;
    check(tt_flush_because("an optimizer's step ends"));
  }
  return none();
  END_HANDLE_TH_ERRORS
}

// A mark; explain_end takes it and gives what was noted since, as (kind, where, text).
PyObject* explain_begin(PyObject*, PyObject*) {
  return PyLong_FromLongLong(tt_explain_begin());
}

PyObject* explain_end(PyObject*, PyObject* arg) {
  HANDLE_TH_ERRORS
  const int64_t mark = to_int(arg);
  struct Note {
    tt_explain_kind kind;
    std::string where, text;
  };
  std::vector<Note> notes;
  {
    const NoGil no_gil;
    tt_explain_end(
        mark,
        [](tt_explain_kind kind, const char* where, const char* text, void* ctx) {
          static_cast<std::vector<Note>*>(ctx)->push_back({kind, where, text});
        },
        &notes);
  }
  static const char* const kinds[] = {"cut", "new", "cpu"};
  PyObject* const list = PyList_New(0);
  for (const Note& note : notes) {
    PyObject* const row = Py_BuildValue("sss", kinds[note.kind], note.where.c_str(), note.text.c_str());
    if (row == nullptr || PyList_Append(list, row) != 0) {
      Py_XDECREF(row);
      Py_DECREF(list);
      throw python_error();
    }
    Py_DECREF(row);
  }
  return list;
  END_HANDLE_TH_ERRORS
}

PyObject* mode_set(PyObject*, PyObject* arg) {
  HANDLE_TH_ERRORS
  auto mode = static_cast<tt_mode>(to_int(arg));
  {
    NoGil no_gil;
    check(tt_mode_set(mode));
  }
  return none();
  END_HANDLE_TH_ERRORS
}
PyObject* precision_set(PyObject*, PyObject* arg) {
  HANDLE_TH_ERRORS
  tt_precision_set(static_cast<int>(to_int(arg)));
  return none();
  END_HANDLE_TH_ERRORS
}

// ---- figures ------------------------------------------------------------------------------------------------------------------
PyObject* stats(PyObject*, PyObject*) {
  HANDLE_TH_ERRORS
  tt_stats now;
  tt_stats_get(&now);
  PyObject* const dict = PyDict_New();
#define TT_FIELD(name) put(dict, #name, number(now.name))
  TT_FIELD(calls);
  TT_FIELD(hits);
  TT_FIELD(compiled);
  TT_FIELD(loaded);
  TT_FIELD(launches);
  TT_FIELD(bytes_to_device);
  TT_FIELD(bytes_to_host);
  TT_FIELD(shared_copies);
  TT_FIELD(recorded);
  TT_FIELD(cuts);
  TT_FIELD(fused_runs);
  TT_FIELD(compile_ns);
  TT_FIELD(load_ns);
  TT_FIELD(plans);
  TT_FIELD(programs);
#undef TT_FIELD
  return dict;
  END_HANDLE_TH_ERRORS
}

PyObject* fallbacks(PyObject*, PyObject*) {
  HANDLE_TH_ERRORS
  PyObject* const dict = PyDict_New();
  for (const auto& [name, count] : fallback_counts()) {
    put(dict, name.c_str(), number(count));
  }
  return dict;
  END_HANDLE_TH_ERRORS
}
PyObject* fallbacks_clear(PyObject*, PyObject*) {
  fallback_counts_clear();
  return none();
}

PyObject* live_objects(PyObject*, PyObject*) {
  HANDLE_TH_ERRORS
  PyObject* const dict = PyDict_New();
  tt_live_objects(
      [](const char* kind, int64_t live, void* ctx) { put(static_cast<PyObject*>(ctx), kind, number(live)); }, dict);
  return dict;
  END_HANDLE_TH_ERRORS
}

PyObject* ops(PyObject*, PyObject*) {
  static const char* const routes[] = {"lowering", "composite", "decomposition", "fallback"};
  PyObject* const list = PyList_New(0);
  for (int i = 0; list != nullptr && i < tt_op_count(); ++i) {
    const tt_op* const op = tt_op_at(i);
    PyObject* const row =
        Py_BuildValue("ssss", tt_op_schema(op), routes[tt_op_route(op)], tt_op_note(op), tt_op_file(op));
    if (row == nullptr || PyList_Append(list, row) != 0) {
      Py_XDECREF(row);
      Py_DECREF(list);
      return nullptr;
    }
    Py_DECREF(row);
  }
  return list;
}

PyObject* knobs(PyObject*, PyObject*) {
  PyObject* const list = PyList_New(0);
  const char *name = nullptr, *type = nullptr, *help = nullptr;
  char value[1024];
  for (int i = 0; list != nullptr && tt_knob(i, &name, &type, &help, value, sizeof value); ++i) {
    PyObject* const row = Py_BuildValue("ssss", name, type, help, value);
    if (row == nullptr || PyList_Append(list, row) != 0) {
      Py_XDECREF(row);
      Py_DECREF(list);
      return nullptr;
    }
    Py_DECREF(row);
  }
  return list;
}

// ---- cache --------------------------------------------------------------------------------------------------------------------
PyObject* cache_folder(PyObject*, PyObject*) {
  return text(tt_cache_folder());
}
PyObject* cache_usage(PyObject*, PyObject*) {
  HANDLE_TH_ERRORS
  int64_t files = 0, bytes = 0;
  {
    const NoGil no_gil;
    check(tt_cache_usage(&files, &bytes));
  }
  return Py_BuildValue("LL", static_cast<long long>(files), static_cast<long long>(bytes));
  END_HANDLE_TH_ERRORS
}
PyObject* cache_clear(PyObject*, PyObject*) {
  HANDLE_TH_ERRORS {
    const NoGil no_gil;
    check(tt_cache_clear());
  }
  return none();
  END_HANDLE_TH_ERRORS
}
PyObject* memory_cache_clear(PyObject*, PyObject*) {
  {
    const NoGil no_gil;
    tt_memory_cache_clear();
  }
  return none();
}

PyObject* await_backward(PyObject*, PyObject*) {
  {
    const NoGil no_gil;
    await_backward_threads();
  }
  return none();
}

PyObject* set_finder_callable(PyObject*, PyObject* arg) {
  set_finder(arg);
  return none();
}

PyMethodDef methods[] = {
    {"flush",              flush,                                                              METH_NOARGS,   "Fused mode: runs what is recorded."                              },
    {"graph_create",       graph_create,                                                       METH_VARARGS,  "(name, callable) -> graph"                                       },
    {"graph_call",         reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(graph_call)), METH_FASTCALL,
     "(graph, tensors read, tensors written, integers) -> list"                                                                                                                 },
    {"available",          available,                                                          METH_NOARGS,   "A plugin can be found; does not start the runtime."              },
    {"started",            started,                                                            METH_NOARGS,   "The runtime has started."                                        },
    {"in_bad_fork",        in_bad_fork,                                                        METH_NOARGS,   "The runtime had started before a fork made this process."        },
    {"start",              start,                                                              METH_NOARGS,   "Starts the runtime."                                             },
    {"plugin_path",        plugin_path,                                                        METH_NOARGS,   "The plugin that is or would be used."                            },
    {"describe",           describe_runtime,                                                   METH_NOARGS,   "What is running: plugin, platform, devices. Starts the runtime." },
    {"device_count",       device_count,                                                       METH_NOARGS,   "Devices; 0 if the runtime cannot start."                         },
    {"get_device",         get_device,                                                         METH_NOARGS,   "This thread's current device."                                   },
    {"exchange_device",    exchange_device,                                                    METH_O,        "Sets the current device, returns the one before."                },
    {"synchronize",        synchronize,                                                        METH_O,        "Waits for a device; -1 is the current one."                      },
    {"mem_get_info",       mem_get_info,                                                       METH_O,        "(free, total) bytes of a device; -1 is the current one."         },
    {"default_generator",  default_generator_of,                                               METH_O,        "A device's default generator."                                   },
    {"seed_all",           seed_all,                                                           METH_O,        "Seeds all devices' default generators; starts nothing."          },
    {"is_pinned",          pinned,                                                             METH_O,        "An address lies in pinned host memory."                          },
    {"mode_get",           mode_get,                                                           METH_NOARGS,   "0 strict, 1 debug, 2 fused."                                     },
    {"mode_set",           mode_set,                                                           METH_O,        "0 strict, 1 debug."                                              },
    {"precision_set",      precision_set,                                                      METH_O,        "Precision of f32 products: 0 default, 1 high, 2 highest."        },
    {"explain_begin",      explain_begin,                                                      METH_NOARGS,   "Begins to note cuts, new calls and CPU runs; returns a mark."    },
    {"explain_end",        explain_end,                                                        METH_O,        "What was noted since a mark: (kind, where, text)."               },
    {"stats",              stats,                                                              METH_NOARGS,   "Counters since the start."                                       },
    {"fallbacks",          fallbacks,                                                          METH_NOARGS,   "Calls that ran on the CPU, by op."                               },
    {"fallbacks_clear",    fallbacks_clear,                                                    METH_NOARGS,   "Forgets them."                                                   },
    {"live_objects",       live_objects,                                                       METH_NOARGS,   "Live objects of the C side, by kind."                            },
    {"ops",                ops,                                                                METH_NOARGS,   "The op table: (schema, route, note, topic)."                     },
    {"knobs",              knobs,                                                              METH_NOARGS,   "Environment variables: (name, type, help, value)."               },
    {"cache_folder",       cache_folder,                                                       METH_NOARGS,   "The disk cache's folder, None if it is off."                     },
    {"cache_usage",        cache_usage,                                                        METH_NOARGS,   "(files, bytes) of the disk cache."                               },
    {"cache_clear",        cache_clear,                                                        METH_NOARGS,   "Removes the files of the disk cache."                            },
    {"memory_cache_clear", memory_cache_clear,                                                 METH_NOARGS,   "Forgets plans and programs held in memory."                      },
    {"await_backward",     await_backward,                                                     METH_NOARGS,   "Waits until PyTorch's backward threads hold nothing of Python's."},
    {"process_group",      process_group,                                                      METH_VARARGS,  "(gloo backend, timeout in ms) -> backend tpu_dist around it"     },
    {"set_finder",         set_finder_callable,                                                METH_O,        "Sets the function that finds a plugin."                          },
    {nullptr,              nullptr,                                                            0,             nullptr                                                           },
};

PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "torch_tpu._C", nullptr, -1, methods, nullptr, nullptr, nullptr, nullptr};

}  // namespace
}  // namespace tt

PyMODINIT_FUNC PyInit__C() {
  HANDLE_TH_ERRORS
  tt::install_callbacks();
  tt::register_ops();
  tt::register_layouts();
  return PyModule_Create(&tt::definition);
  END_HANDLE_TH_ERRORS
}
