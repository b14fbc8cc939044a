# SPDX-License-Identifier: Apache-2.0
"""Makes this checkout the installed `torchtpu` of the running interpreter: a .pth file that points to python/ and the
metadata through which PyTorch finds the entry point. Nothing is copied, so a rebuild is ninja alone."""

import pathlib
import sysconfig
import tomllib

ROOT = pathlib.Path(__file__).resolve().parent.parent


def write(path, text):
    if not path.exists() or path.read_text() != text:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def main():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    name, version = project["name"], project["version"]
    site = pathlib.Path(sysconfig.get_path("purelib"))
    info = site / f"{name}-{version}.dist-info"
    groups = []
    for group, entries in project.get("entry-points", {}).items():
        groups.append(f"[{group}]\n" + "".join(f"{key} = {value}\n" for key, value in entries.items()))
    scripts = project.get("scripts", {})
    if scripts:
        groups.append("[console_scripts]\n" + "".join(f"{key} = {value}\n" for key, value in scripts.items()))
    requires = "".join(f"Requires-Dist: {item}\n" for item in project.get("dependencies", []))
    others = [old for old in site.glob(f"{name}-*.dist-info") if old != info]
    if (site / "torch_tpu").exists() or others:  # an installed copy would be imported in place of this checkout
        raise SystemExit(f"expected no installed copy of {name} in {site}: .venv/bin/pip uninstall -y {name}")
    write(site / f"{name}_dev.pth", f"{ROOT / 'python'}\n")
    write(info / "METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{requires}")
    write(info / "entry_points.txt", "\n".join(groups))
    write(info / "INSTALLER", "torch_tpu ./dev\n")
    files = [f"{name}_dev.pth"] + [f"{info.name}/{file}" for file in ("METADATA", "entry_points.txt", "INSTALLER", "RECORD")]
    write(info / "RECORD", "".join(f"{file},,\n" for file in files))


if __name__ == "__main__":
    main()
