# SPDX-License-Identifier: Apache-2.0
"""The disk cache of compiled programs as files: listing them, and taking them to another machine with the same plugin.

An archive is a tar file: manifest.json says which plugin compiled the programs and holds a checksum of each."""

import hashlib
import io
import json
import os
import pathlib
import re
import struct
import tarfile

from torch_tpu import _C

FORMAT = 1
_NAME = re.compile(r"[0-9a-f]{32}\.ttp")
_HEADER = struct.Struct("<8sIIQQQQQ")  # magic, version, 0, key, payload size, checksum
_MAGIC = b"TTPROG\r\n"


class CacheError(RuntimeError):
    """An archive that cannot be used, and why."""


def folder():
    found = _C.cache_folder()
    if found is None:
        raise CacheError("the disk cache is off (TORCH_TPU_CACHE_DIR=none)")
    return pathlib.Path(found)


def programs(where=None):
    """The cache's files, the one used last first."""
    found = [path for path in (where or folder()).iterdir() if _NAME.fullmatch(path.name)]
    return sorted(found, key=lambda path: path.stat().st_mtime, reverse=True)


def _host():
    # Machine code for a CPU is good for CPUs with the same features only.
    with open("/proc/cpuinfo") as file:
        for line in file:
            if line.startswith(("flags", "Features")):
                return hashlib.sha256(line.encode()).hexdigest()[:16]
    return ""


def plugin():
    """What a program depends on besides its text."""
    about = _C.describe()
    return {
        "platform": about["platform"],
        "version": about["platform_version"],
        "plugin bytes": os.path.getsize(about["plugin_path"]),
        "PJRT API": f"{about['api_major']}.{about['api_minor']}",
        "device": about["device_kind"],
        "devices": about["device_count"],
        "CPU features": _host() if about["stand_in"] else "",
    }


def _problem(name, data):
    """Why the bytes are no sound program file, or None."""
    if len(data) < _HEADER.size:
        return "it is cut short"
    magic, version, _, high, low, size, _, _ = _HEADER.unpack_from(data)
    if magic != _MAGIC or version != 1:
        return "it is no program file of this version"
    if size != len(data) - _HEADER.size:
        return f"expected {size} bytes of program, got {len(data) - _HEADER.size}"
    if f"{high:016x}{low:016x}.ttp" != name:
        return "its name is not its key"
    return None


def _add(archive, name, data):
    entry = tarfile.TarInfo(name)
    entry.size = len(data)
    archive.addfile(entry, io.BytesIO(data))


def export_to(target):
    """Writes all programs of the cache to the archive `target`. Returns their number and bytes."""
    sound = {}
    for path in programs():
        data = path.read_bytes()
        if _problem(path.name, data) is None:
            sound[path.name] = data
    manifest = {
        "format": FORMAT,
        "plugin": plugin(),
        "programs": {name: hashlib.sha256(data).hexdigest() for name, data in sound.items()},
    }
    partial = f"{target}.tmp"
    try:
        with tarfile.open(partial, "w") as archive:
            _add(archive, "manifest.json", json.dumps(manifest, indent=1).encode())
            for name, data in sound.items():
                _add(archive, name, data)
        os.replace(partial, target)
    finally:
        if os.path.exists(partial):
            os.remove(partial)
    return len(sound), sum(map(len, sound.values()))


def _read(source):
    """An archive's manifest and files, all checked before anything is used."""
    try:
        with tarfile.open(source, "r") as archive:
            files = {entry.name: archive.extractfile(entry).read() for entry in archive if entry.isfile()}
        manifest = json.loads(files.pop("manifest.json"))
        wanted = manifest["programs"]
    except (tarfile.TarError, EOFError, KeyError, ValueError, TypeError) as error:
        raise CacheError(f"{source}: expected an archive of `cache export`, got something else ({error!r})") from None
    if manifest.get("format") != FORMAT:
        raise CacheError(f"{source}: expected an archive of format {FORMAT}, got {manifest.get('format')!r}")
    if set(wanted) != set(files):
        raise CacheError(f"{source}: expected {len(wanted)} programs, got {len(files)}")
    for name, data in files.items():
        if not _NAME.fullmatch(name):
            raise CacheError(f"{source}: {name!r} is no program's name")
        if hashlib.sha256(data).hexdigest() != wanted[name]:
            raise CacheError(f"{source}: {name} is damaged: its checksum is wrong")
        problem = _problem(name, data)
        if problem is not None:
            raise CacheError(f"{source}: {name} is damaged: {problem}")
    return manifest, files


def import_from(source):
    """Adds an archive's programs to the cache. Returns how many it held and how many of them were new here."""
    manifest, files = _read(source)
    here, theirs = plugin(), manifest.get("plugin", {})
    differing = [f"{key}: {theirs.get(key)!r} there, {here[key]!r} here" for key in here if theirs.get(key) != here[key]]
    if differing:
        raise CacheError(f"{source} was made with another plugin or machine; its programs would never be used ({'; '.join(differing)})")
    where, fresh = folder(), 0
    for name, data in files.items():
        path = where / name
        if path.exists():
            continue
        partial = where / f"{name}.{os.getpid()}.tmp"
        partial.write_bytes(data)
        os.replace(partial, path)
        fresh += 1
    return len(files), fresh
