# SPDX-License-Identifier: Apache-2.0
"""The device: names the PyTorch world calls, loading, the current device, the command line."""

import copy
import json
import os
import subprocess
import sys

import pytest
import torch

import torch_tpu
from torch_tpu import _loader, _plugin


def run_python(code, **environment):
    env = {**os.environ, **environment}
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=env, timeout=120)
    assert result.returncode == 0, result.stderr
    return result.stdout.strip()


NAMES = """
Event Stream StreamContext current_device current_stream default_generators default_stream device device_count device_of
eager_mode empty_cache fallbacks get_amp_supported_dtype get_compute_capability get_device_capability get_device_name
get_device_properties get_eager_mode get_rng_state get_rng_state_all init initial_seed is_available is_bf16_supported
is_initialized manual_seed manual_seed_all max_memory_allocated max_memory_reserved mem_get_info memory memory_allocated
memory_reserved memory_stats precision Precision reset_accumulated_memory_stats reset_peak_memory_stats seed seed_all
set_device set_eager_mode set_rng_state set_rng_state_all set_stream stats stream synchronize _get_cache_stats
_hbm_usage_summary _is_in_bad_fork _lazy_init
""".split()


@pytest.mark.parametrize("name", NAMES)
def test_torch_tpu_has_the_names_the_ecosystem_calls(name):
    assert hasattr(torch.tpu, name)


def test_device_module_is_importable():
    import torch.tpu

    assert sys.modules["torch.tpu"] is torch.tpu
    assert sys.modules["torch.tpu.memory"] is torch.tpu.memory
    assert torch.get_device_module("tpu") is torch.tpu


def test_backend_object_is_there():
    assert torch.backends.tpu.is_built()
    assert torch.backends.tpu.is_available()
    assert torch.backends.tpu.allow_excess_precision is False
    with pytest.raises(NotImplementedError, match="allow_excess_precision"):
        torch.backends.tpu.allow_excess_precision = True


def test_load_is_idempotent():
    before = torch.tpu
    _loader.load()
    _loader.load()
    assert torch.tpu is before
    assert _loader.error is None


def test_generated_methods():
    x = torch.ones(2).tpu()
    assert x.is_tpu
    assert x.device == torch.device("tpu:0")
    assert not torch.ones(2).is_tpu
    assert torch.nn.Linear(2, 2).tpu().weight.is_tpu
    assert x.untyped_storage().is_tpu
    assert torch.ones(2).untyped_storage().tpu().device == torch.device("tpu:0")


def test_accelerator_is_tpu():
    assert torch.accelerator.current_accelerator() == torch.device("tpu")
    assert torch.accelerator.is_available()
    assert torch.accelerator.device_count() == torch.tpu.device_count() >= 1
    assert torch.accelerator.current_device_index() == torch.tpu.current_device() == 0
    torch.accelerator.set_device_index(0)
    torch.accelerator.synchronize()


def test_devices_parse_and_compare():
    assert torch.device("tpu").type == "tpu"
    assert torch.device("tpu").index is None
    assert torch.device("tpu", 0) == torch.device("tpu:0")
    assert str(torch.zeros(1, device="tpu").device) == "tpu:0"
    assert torch.zeros(1, device="tpu").get_device() == 0
    assert torch._utils._get_available_device_type() == "tpu"


def test_current_device_context():
    with torch.tpu.device(0):
        assert torch.tpu.current_device() == 0
    with torch.tpu.device("tpu:0"), torch.tpu.device(None), torch.tpu.device(-1):
        assert torch.tpu.current_device() == 0
    with torch.tpu.device_of(torch.ones(1)), torch.tpu.device_of(torch.ones(1, device="tpu")):
        assert torch.tpu.current_device() == 0
    with torch.device("tpu"):
        assert torch.empty(1).is_tpu


@pytest.mark.parametrize("device", ["cpu", torch.device("meta")])
def test_another_devices_name_is_refused(device):
    with pytest.raises(ValueError, match="expected a tpu device"):
        torch.tpu.set_device(device)


@pytest.mark.parametrize("device", [True, 1.5, object()])
def test_what_is_no_device_is_refused(device):
    with pytest.raises(TypeError, match="expected a device"):
        torch.tpu.set_device(device)


def test_device_index_out_of_range_names_the_index():
    count = torch.tpu.device_count()
    with pytest.raises(RuntimeError, match=f"index below {count}, got {count + 3}"):
        torch.tpu.set_device(count + 3)
    assert torch.tpu.current_device() == 0
    with pytest.raises(RuntimeError, match=f"{count + 3}"):
        torch.tpu.get_device_properties(count + 3)
    with pytest.raises(RuntimeError, match=f"{count + 3}"):
        torch.ones(2).to(f"tpu:{count + 3}")


def test_properties():
    properties = torch.tpu.get_device_properties()
    assert properties.name == torch.tpu.get_device_name(0)
    assert properties.total_memory > 0
    assert properties.multi_processor_count == 1
    if properties.stand_in:
        assert "standing in for a TPU" in properties.name
    assert torch.tpu.get_compute_capability() == ""
    supported = torch.tpu.get_device_capability()["supported_dtypes"]
    assert {torch.float32, torch.bfloat16, torch.int64, torch.bool, torch.complex64} <= supported
    assert torch.complex32 not in supported
    assert torch.quint8 not in supported


def test_amp_dtypes():
    assert torch.bfloat16 in torch.tpu.get_amp_supported_dtype()
    assert torch.tpu.is_bf16_supported()
    with torch.autocast("tpu", dtype=torch.bfloat16):
        assert torch.is_autocast_enabled("tpu")
        y = torch.ones(2, 2, device="tpu") @ torch.ones(2, 2, device="tpu")
    assert y.dtype == torch.bfloat16
    assert y.cpu().tolist() == [[2, 2], [2, 2]]


def test_autocast_keeps_f32_ops_in_f32_and_refuses_bce():
    half = torch.ones(4, device="tpu", dtype=torch.bfloat16)
    with torch.autocast("tpu", dtype=torch.bfloat16):
        assert torch.exp(half).dtype == torch.float32
        assert (half + half).dtype == torch.bfloat16
        with pytest.raises(RuntimeError, match="unsafe to autocast"):
            torch.nn.functional.binary_cross_entropy(half.float(), half.float())


@pytest.fixture(autouse=True)
def strict():
    yield
    torch.tpu.set_eager_mode("strict")


def test_eager_modes():
    assert torch.tpu.get_eager_mode() == "strict"
    with torch.tpu.eager_mode("debug"):
        assert torch.tpu.get_eager_mode() == "debug"
        assert (torch.ones(2, device="tpu") + 1).tolist() == [2, 2]
    assert torch.tpu.get_eager_mode() == "strict"
    torch.tpu.set_eager_mode("debug")
    assert torch.tpu.get_eager_mode() == "debug"
    torch.tpu.set_eager_mode("strict")
    with torch.tpu.eager_mode("fused"):
        assert torch.tpu.get_eager_mode() == "fused"
        assert (torch.ones(2, device="tpu") + 1).mul(3).tolist() == [6, 6]
    with pytest.raises(ValueError, match="strict"):
        torch.tpu.set_eager_mode("quick")


def test_execution_mode_module_takes_both_spellings():
    from torch_tpu._internal import execution_mode as em

    assert em.eager_mode is em.EagerMode.DEFER_NEVER
    with em.set_eager_mode(em.EagerMode.DEFER_NEVER_AND_LAUNCH_BLOCKING):
        assert torch.tpu.get_eager_mode() == "debug"
    with em.eager_mode(em.EagerMode.DEFER_NEVER_AND_LAUNCH_BLOCKING):
        assert em.get_eager_mode() is em.EagerMode.DEFER_NEVER_AND_LAUNCH_BLOCKING
    em.eager_mode = em.EagerMode.DEFER_NEVER_AND_LAUNCH_BLOCKING
    assert torch.tpu.get_eager_mode() == "debug"
    em.eager_mode = em.EagerMode.DEFER_NEVER
    assert torch.tpu.get_eager_mode() == "strict"
    with em.set_eager_mode(em.EagerMode.DEFER_AND_FUSE):
        assert torch.tpu.get_eager_mode() == "fused"
    assert em.eager_mode is em.EagerMode.DEFER_NEVER


def test_precision_is_pytorchs_setting_for_a_block():
    before = torch.get_float32_matmul_precision()
    with torch.tpu.precision(torch.tpu.Precision.DEFAULT):
        assert torch.get_float32_matmul_precision() == "medium"
        with torch.tpu.precision("highest"):
            assert torch.get_float32_matmul_precision() == "highest"
    assert torch.get_float32_matmul_precision() == before
    with pytest.raises(ValueError, match="precision"):
        with torch.tpu.precision("exact"):
            pass


def test_stats_count_calls_and_hits():
    x = torch.ones(3, 5, device="tpu")
    (x + 1).cpu()
    before, cache = torch.tpu.stats(), torch.tpu._get_cache_stats()
    (x + 1).cpu()
    after, cache_after = torch.tpu.stats(), torch.tpu._get_cache_stats()
    assert after["hits"] > before["hits"]
    assert after["compiled"] == before["compiled"]
    assert after["bytes_to_host"] - before["bytes_to_host"] == 60
    assert cache_after.num_cache_reqs - cache.num_cache_reqs == cache_after.num_cache_hits - cache.num_cache_hits > 0


def test_not_implemented_names_say_so():
    from torch_tpu._internal.utils import hardware

    assert hardware.get_tpu_device_name() == torch.tpu.get_device_name()
    with pytest.raises(NotImplementedError, match="TORCH_TPU_TOPOLOGY"):
        hardware.get_tpu_topology(4)
    with pytest.raises(NotImplementedError):
        torch.tpu.get_local_device_attributes()


def test_print_and_repr():
    x = torch.tensor([[1.5, -2.0], [float("nan"), float("inf")]], device="tpu")
    assert repr(x) == repr(x.cpu())[:-1] + ", device='tpu:0')"
    assert str(torch.arange(3, device="tpu")) == "tensor([0, 1, 2], device='tpu:0')"
    assert repr(torch.empty(0, 2, device="tpu")) == "tensor([], device='tpu:0', size=(0, 2))"
    assert f"{torch.tensor(2.5, device='tpu'):.2f}" == "2.50"


def test_unknown_layouts_are_refused():
    with pytest.raises((NotImplementedError, RuntimeError)):
        torch.empty(2, device="tpu", layout=torch._mkldnn)
    with pytest.raises(RuntimeError, match="pinned"):
        torch.empty(2, device="tpu", pin_memory=True)


# ---- in other processes -------------------------------------------------------------------------------------------------------
def test_import_starts_nothing_and_imports_little():
    out = run_python(
        "import sys, torch; torch.manual_seed(3); torch.tpu.is_available(); torch.tpu.current_device(); torch.tpu.memory_stats();"
        "torch.tpu.synchronize(); torch.tpu.empty_cache();"
        "print(torch.tpu.is_initialized(), torch.tpu._initialized, 'torch._dynamo' in sys.modules)"
    )
    assert out == "False False False"


def test_plugin_none_leaves_pytorch_alone():
    out = run_python(
        "import torch, torch_tpu; print(hasattr(torch, 'tpu'), hasattr(torch.backends, 'tpu'), torch._C._get_privateuse1_backend_name())",
        TORCH_TPU_PLUGIN="none",
    )
    assert out == "False False privateuseone"


def test_a_missing_plugin_is_no_error_until_it_is_needed():
    code = """
import torch
print(torch.tpu.is_available())
try:
    torch.ones(2, device="tpu").cpu()
except RuntimeError as error:
    print(error)
"""
    out = run_python(code, TORCH_TPU_PLUGIN="/nowhere/plugin.so").splitlines()
    assert "/nowhere/plugin.so" in out[1]


def test_autoload_off_and_explicit_import():
    code = "import torch; print(hasattr(torch, 'tpu')); import torch_tpu; print(torch.tpu.is_available())"
    assert run_python(code, TORCH_DEVICE_BACKEND_AUTOLOAD="0").split() == ["False", "True"]


def test_torch_tpu_imported_first():
    assert run_python("import torch_tpu, torch; print(torch.ones(2, device='tpu').sum().item())") == "2.0"


def test_a_forked_child_gets_a_clear_error():
    code = """
import os, torch
torch.ones(2, device="tpu").cpu()
read, write = os.pipe()
pid = os.fork()
if pid == 0:
    try:
        bad = torch.tpu._is_in_bad_fork()
        try:
            torch.zeros(2, device="tpu").cpu()
            text = "no error"
        except RuntimeError as error:
            text = str(error)
        os.write(write, f"{bad} {text}".encode())
    finally:
        os._exit(0)
os.waitpid(pid, 0)
print(os.read(read, 4096).decode())
print(torch.ones(2, device="tpu").sum().item())
"""
    child, parent = run_python(code).splitlines()
    assert child.startswith("True") and "fork" in child and "spawn" in child
    assert parent == "2.0"


def test_fork_before_the_first_use_is_fine():
    code = """
import os, torch
pid = os.fork()
value = torch.ones(2, device="tpu").sum().item()
if pid == 0:
    os._exit(int(value))
print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), value)
"""
    assert run_python(code) == "2 2.0"


def test_dynamo_uses_our_interface():
    code = """
import torch
from torch._dynamo.device_interface import get_interface_for_device
interface = get_interface_for_device("tpu")
print(interface.__module__, interface.device_count(), interface.is_dtype_supported(torch.float64), interface.current_device())
"""
    name, count, double, current = run_python(code).split()
    assert name == "torch_tpu._dynamo_interface"
    assert int(count) >= 1
    assert (double, current) == ("True", "0")


def test_several_devices_in_one_process():
    code = """
import torch
print(torch.tpu.device_count())
a = torch.arange(4., device="tpu:1")
print(a.device, (a + 1).device, (a * 2).tolist(), a.to("tpu:0").tolist(), a.to("tpu:0").device)
with torch.tpu.device(1):
    print(torch.ones(1, device="tpu").device, torch.tpu.current_device())
b = torch.zeros(2, 4, device="tpu:0", dtype=torch.int64)
b.copy_(a)
print(b.tolist())
try:
    a + b
except RuntimeError as error:
    print("same device" in str(error))
before = [torch.tpu.memory_allocated(i) for i in range(2)]
c = torch.ones(1024, device="tpu:1")
print([torch.tpu.memory_allocated(i) - before[i] for i in range(2)])
torch.tpu.reset_peak_memory_stats(1)
torch.ones(1 << 20, device="tpu:0")
print(torch.tpu.max_memory_allocated(1) == torch.tpu.memory_allocated(1), torch.tpu.max_memory_allocated(0) > 1 << 22)
"""
    out = run_python(code, TORCH_TPU_CPU_DEVICES="2").splitlines()
    if out[0] != "2":
        pytest.skip("this plugin shows one device only")
    assert out[1] == "tpu:1 tpu:1 [0.0, 2.0, 4.0, 6.0] [0.0, 1.0, 2.0, 3.0] tpu:0"
    assert out[2:5] == ["tpu:1 1", "[[0, 1, 2, 3], [0, 1, 2, 3]]", "True"]
    assert out[5:] == ["[0, 4096]", "True True"]


# ---- finding a plugin -----------------------------------------------------------------------------------------------------------
def make_pci(root, *chips):
    for i, (vendor, device) in enumerate(chips):
        folder = root / f"0000:00:0{i}.0"
        folder.mkdir(parents=True)
        (folder / "vendor").write_text(vendor + "\n")
        (folder / "device").write_text(device + "\n")


def test_chips_are_found_on_the_pci_bus(tmp_path):
    make_pci(tmp_path, ("0x1ae0", "0x006f"), ("0x8086", "0x006f"), ("0x1ae0", "0x0062"), ("0x1ae0", "0x1234"))
    assert _plugin.chips(tmp_path) == ["TPU v6e", "TPU v5p"]
    assert _plugin.chips(tmp_path / "none") == []


def test_libtpu_goes_before_the_stand_in(tmp_path, monkeypatch):
    make_pci(tmp_path, ("0x1ae0", "0x006f"))
    monkeypatch.setattr(_plugin, "chips", lambda: ["TPU v6e"])
    monkeypatch.setenv("TPU_LIBRARY_PATH", "/opt/libtpu.so")
    assert _plugin.find() == "/opt/libtpu.so"
    monkeypatch.delenv("TPU_LIBRARY_PATH")
    monkeypatch.setattr(_plugin, "_folder", lambda module: None)
    with pytest.raises(FileNotFoundError, match="pip install libtpu"):
        _plugin.find()


def test_nothing_found_says_what_to_install(monkeypatch):
    monkeypatch.setattr(_plugin, "chips", list)
    monkeypatch.setattr(_plugin, "_folder", lambda module: None)
    with pytest.raises(FileNotFoundError, match="pip install xla-cpu-pjrt"):
        _plugin.find()


# ---- the command line -----------------------------------------------------------------------------------------------------------
def run_module(*arguments, **environment):
    env = {**os.environ, **environment}
    return subprocess.run(
        [sys.executable, "-m", "torch_tpu", *arguments], capture_output=True, text=True, env=env, timeout=120
    )


def test_info_command():
    result = run_module("info")
    assert result.returncode == 0, result.stderr
    for word in ("torch ", "plugin", "PJRT API", "devices", "memory", "disk cache", "TORCH_TPU_PLUGIN"):
        assert word in result.stdout
    if torch.tpu.get_device_properties().stand_in:
        assert "stands in" in result.stdout


def test_info_command_without_a_plugin_says_why():
    result = run_module("info", TORCH_TPU_PLUGIN="/nowhere/plugin.so")
    assert result.returncode == 1
    assert "/nowhere/plugin.so" in result.stderr


def test_ops_command_lists_the_table():
    result = run_module("ops")
    assert result.returncode == 0, result.stderr
    assert "add.Tensor" in result.stdout
    assert "lowering" in result.stdout.splitlines()[-1]


def test_cache_commands(tmp_path):
    folder = {"TORCH_TPU_CACHE_DIR": str(tmp_path / "cache")}
    run_python("import torch; (torch.ones(7, device='tpu') * 3).cpu()", **folder)
    before = run_module("cache", "info", **folder)
    assert str(tmp_path / "cache") in before.stdout and " 0 programs" not in before.stdout
    assert "0 programs" in run_module("cache", "clear", **folder).stdout
    assert "off" in run_module("cache", "info", TORCH_TPU_CACHE_DIR="none").stdout


def test_version_matches_metadata():
    import importlib.metadata

    assert importlib.metadata.version("torchtpu") == torch_tpu.__version__
    assert json.dumps(copy.copy(torch.tpu.stats()))  # plain numbers


# ---- when things go wrong -------------------------------------------------------------------------------------------------------
def warnings_of(stderr):
    return [line for line in stderr.splitlines() if "UserWarning" in line]


def test_a_full_disk_gives_one_warning_and_work_goes_on(tmp_path):
    code = """
import resource, torch
resource.setrlimit(resource.RLIMIT_FSIZE, (1024, 1024))
x = torch.arange(3.0, device="tpu")
print((x + 1).tolist(), (x * 2).tolist(), x.exp().sum().item() > 0)
"""
    environment = {**os.environ, "TORCH_TPU_CACHE_DIR": str(tmp_path / "cache")}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment, timeout=120)
    assert done.stdout.strip() == "[1.0, 2.0, 3.0] [0.0, 2.0, 4.0] True", done.stderr
    (warning,) = warnings_of(done.stderr)
    assert "cache is not written" in warning and "File too large" in warning and str(tmp_path) in warning


def test_a_cache_folder_that_cannot_be_made_gives_one_warning(tmp_path):
    (tmp_path / "file").write_text("")
    code = 'import torch; x = torch.arange(3.0, device="tpu"); print((x + 1).tolist(), (x * 2).tolist())'
    environment = {**os.environ, "TORCH_TPU_CACHE_DIR": str(tmp_path / "file" / "cache")}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment, timeout=120)
    assert done.stdout.strip() == "[1.0, 2.0, 3.0] [0.0, 2.0, 4.0]", done.stderr
    (warning,) = warnings_of(done.stderr)
    assert "cannot make" in warning and "Not a directory" in warning


def test_ctrl_c_during_a_compile():
    code = """
import os, signal, threading, torch
x = torch.rand(24, 24, device="tpu")
x.sum().item()
threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT)).start()  # within the compilation, which takes a second
try:
    torch.linalg.svd(x)
    for _ in range(10_000_000):
        pass
    print("not interrupted")
except KeyboardInterrupt:
    print("interrupted")
u, s, v = torch.linalg.svd(x)
print(torch.allclose(u @ torch.diag(s) @ v, x, atol=1e-4))
"""
    assert run_python(code, TORCH_TPU_CACHE_DIR="none").splitlines() == ["interrupted", "True"]


def test_a_script_may_end_right_after_backward():
    # The backward thread still frees the graph then: without care 4 of 10 such processes end in abort().
    code = """
import torch
x = torch.ones(3, device="tpu", requires_grad=True)
def chain(y):
    kept = [y]
    for _ in range(300):
        kept.append(kept[-1] * 1.0)
    return kept[-1]
chain(x).sum().backward()
"""
    for _ in range(6):
        run_python(code)
