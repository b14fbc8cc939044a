# SPDX-License-Identifier: Apache-2.0
"""The disk cache across processes and machines: a second process compiles nothing; archives are checked before use."""

import io
import json
import os
import subprocess
import sys
import tarfile

import pytest

SCRIPT = """
import torch
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(7, 5), torch.nn.Tanh(), torch.nn.Linear(5, 1)).to("tpu")
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
for step in range(4):
    x = torch.linspace(-1, 1, 21).reshape(3, 7).to("tpu") * (step + 1)
    optimizer.zero_grad()
    loss = model(x).pow(2).mean()
    loss.backward()
    optimizer.step()
print(loss.item())
stats = torch.tpu.stats()
print(stats["compiled"], stats["loaded"], stats["fused_runs"])
"""


def run(folder, *arguments, mode=None, expect=0):
    environment = dict(os.environ, TORCH_TPU_CACHE_DIR=str(folder))
    for name in ("TORCH_TPU_DEFER_AND_FUSE", "TORCH_TPU_COMPILE_WAIT"):
        environment.pop(name, None)
    if mode == "fused":
        environment.update(TORCH_TPU_DEFER_AND_FUSE="1", TORCH_TPU_COMPILE_WAIT="1")
    done = subprocess.run([sys.executable, *arguments], env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == expect, done.stderr
    return done.stdout if expect == 0 else done.stderr


def train(folder, mode):
    loss, counts = run(folder, "-c", SCRIPT, mode=mode).splitlines()
    return float(loss), [int(n) for n in counts.split()]


@pytest.mark.parametrize("mode", ["strict", "fused"])
def test_a_second_process_compiles_nothing(tmp_path, mode):
    first, (compiled, _, fused) = train(tmp_path, mode)
    assert compiled > 0 and (fused > 0) == (mode == "fused")
    second, (compiled, loaded, _) = train(tmp_path, mode)
    assert compiled == 0 and loaded > 0
    assert second == first


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    base = tmp_path_factory.mktemp("exported")
    code = 'import torch; print((torch.ones(3).to("tpu") * 2 + 1).cpu())'
    (base / "here").mkdir()
    run(base / "here", "-c", code)
    said = run(base / "here", "-m", "torch_tpu", "cache", "export", str(base / "programs.tar"))
    count = len(list((base / "here").glob("*.ttp")))
    assert count > 0 and said.startswith(f"{count} programs")
    return base, count, code


def test_an_exported_cache_serves_another_folder(exported, tmp_path):
    base, count, code = exported
    said = run(tmp_path, "-m", "torch_tpu", "cache", "import", str(base / "programs.tar"))
    assert f"{count} programs read" in said and f"{count} of them new" in said
    assert "0 of them new" in run(tmp_path, "-m", "torch_tpu", "cache", "import", str(base / "programs.tar"))
    assert len(run(tmp_path, "-m", "torch_tpu", "cache", "list").splitlines()) == count
    assert f"{count} programs" in run(tmp_path, "-m", "torch_tpu", "cache", "info")
    out = run(tmp_path, "-c", code + '; s = torch.tpu.stats(); print(s["compiled"], s["loaded"] > 0)')
    assert out.splitlines()[-1] == "0 True"
    assert "0 programs" in run(tmp_path, "-m", "torch_tpu", "cache", "clear")


def rewrite(source, target, change):
    with tarfile.open(source) as archive:
        files = {entry.name: archive.extractfile(entry).read() for entry in archive}
    change(files)
    with tarfile.open(target, "w") as archive:
        for name, data in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            archive.addfile(entry, io.BytesIO(data))
    return target


def another_plugin(files):
    manifest = json.loads(files["manifest.json"])
    manifest["plugin"]["platform"] = "quantum"
    files["manifest.json"] = json.dumps(manifest).encode()


def a_flipped_byte(files):
    name = next(name for name in files if name.endswith(".ttp"))
    files[name] = files[name][:-1] + bytes([files[name][-1] ^ 1])


def a_missing_file(files):
    del files[next(name for name in files if name.endswith(".ttp"))]


def no_manifest(files):
    del files["manifest.json"]


def a_path(files):
    import hashlib

    manifest = json.loads(files["manifest.json"])
    files["../outside.ttp"] = b"x"
    manifest["programs"]["../outside.ttp"] = hashlib.sha256(b"x").hexdigest()
    files["manifest.json"] = json.dumps(manifest).encode()


@pytest.mark.parametrize(
    "change, says",
    [
        (another_plugin, "another plugin or machine.*'quantum' there, 'cpu' here"),
        (a_flipped_byte, "damaged: its checksum is wrong"),
        (a_missing_file, "expected [0-9]+ programs, got"),
        (no_manifest, "expected an archive of `cache export`"),
        (a_path, "no program's name"),
    ],
)
def test_an_archive_that_is_not_right_is_refused_whole(exported, tmp_path, change, says):
    import re

    base, _, _ = exported
    changed = rewrite(base / "programs.tar", tmp_path / "changed.tar", change)
    folder = tmp_path / "cache"
    folder.mkdir()
    assert re.search(says, run(folder, "-m", "torch_tpu", "cache", "import", str(changed), expect=1))
    assert list(folder.iterdir()) == []


def test_what_is_no_archive_is_refused(tmp_path):
    (tmp_path / "text").write_text("hello")
    assert "expected an archive" in run(tmp_path, "-m", "torch_tpu", "cache", "import", str(tmp_path / "text"), expect=1)
    assert "No such file" in run(tmp_path, "-m", "torch_tpu", "cache", "import", str(tmp_path / "none"), expect=1)
