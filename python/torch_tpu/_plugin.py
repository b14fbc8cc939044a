# SPDX-License-Identifier: Apache-2.0
"""Finds the PJRT plugin when TORCH_TPU_PLUGIN names none: libtpu on a machine with TPU chips, else a plugin from the
entry-point group `xla_plugins` (xla-cpu-pjrt), which lets the CPU stand in for a TPU."""

import importlib.metadata
import importlib.util
import os
import pathlib

GOOGLE = "0x1ae0"
CHIPS = {"0x005e": "TPU v4", "0x0062": "TPU v5p", "0x0063": "TPU v5e", "0x006f": "TPU v6e", "0x0076": "TPU v7"}
_PCI = pathlib.Path("/sys/bus/pci/devices")


def chips(root=_PCI):
    """Names of the TPU chips on the PCI bus, one each. Reads files only."""
    found = []
    try:
        entries = sorted(root.iterdir())
    except OSError:
        return found
    for entry in entries:
        try:
            if (entry / "vendor").read_text().strip() == GOOGLE:
                name = CHIPS.get((entry / "device").read_text().strip())
                if name is not None:
                    found.append(name)
        except OSError:
            continue
    return found


def _folder(module):
    """The folder of a package, without importing it; None if it is not installed."""
    try:
        spec = importlib.util.find_spec(module)
    except (ImportError, ValueError):
        return None
    if spec is None or not spec.submodule_search_locations:
        return None
    return pathlib.Path(next(iter(spec.submodule_search_locations)))


def _library(module):
    folder = _folder(module)
    if folder is None:
        return None
    named = folder / f"{module.rpartition('.')[2]}.so"
    if named.is_file():
        return str(named)
    others = sorted(folder.glob("*.so"))
    return str(others[0]) if len(others) == 1 else None


def libtpu():
    """The path of libtpu.so, None if it is not installed."""
    named = os.environ.get("TPU_LIBRARY_PATH")
    if named:
        return named
    folder = _folder("libtpu")
    path = None if folder is None else folder / "libtpu.so"
    return str(path) if path is not None and path.is_file() else None


def find():
    """The path of the plugin to load. FileNotFoundError says what to install."""
    present = chips()
    if present:
        path = libtpu()
        if path is None:
            raise FileNotFoundError(
                f"this machine has {len(present)} chips of {present[0]}, but libtpu is not installed: pip install libtpu"
            )
        return path
    path = _library("xla_plugins.xla_cpu_pjrt")
    if path is not None:
        return path
    for entry in importlib.metadata.entry_points(group="xla_plugins"):
        path = _library(entry.module)
        if path is not None:
            return path
    raise FileNotFoundError(
        "no PJRT plugin was found and there is no TPU on this machine: pip install xla-cpu-pjrt lets the CPU stand in for "
        "one (or set TORCH_TPU_PLUGIN to the path of a plugin)"
    )
