# SPDX-License-Identifier: Apache-2.0
"""python -m torch_tpu info | ops | cache info | cache list | cache clear | cache export FILE | cache import FILE"""

import argparse
import sys


def _size(count):
    return f"{count / 2**20:.1f} MiB" if count < 2**30 else f"{count / 2**30:.1f} GiB"


def _rows(rows):
    width = max(len(name) for name, _ in rows)
    for name, value in rows:
        print(f"{name:<{width}}  {value}")


def info():
    import torch

    import torch_tpu
    from torch_tpu import _C, _plugin

    rows = [("torch", torch.__version__), ("torch_tpu", torch_tpu.__version__)]
    rows.append(("TPU chips", ", ".join(_plugin.chips()) or "none"))
    failure = None
    try:
        about = _C.describe()
    except RuntimeError as error:
        failure = error
    else:
        free, total = _C.mem_get_info(0)
        rows += [
            ("plugin", about["plugin_path"]),
            ("PJRT API", f"{about['api_major']}.{about['api_minor']}"),
            ("platform", f"{about['platform']} {about['platform_version']}".replace("\n", " ")),
            ("devices", f"{about['device_count']} x {about['device_kind']}"),
            ("memory", f"{_size(free)} free of {_size(total)}"),
        ]
    rows += _cache_rows(_C)
    _rows(rows)
    if failure is None and about["stand_in"]:
        print("\nThis machine has no TPU: its CPU stands in for one. Results are real, speed is not a TPU's.")
    print("\nEnvironment variables:")
    for name, kind, text, value in _C.knobs():
        print(f"  {name} = {value or '(unset)'}\n      {text}")
    if failure is not None:
        print(f"\nThe device cannot be used: {failure}", file=sys.stderr)
        return 1
    return 0


def _cache_rows(_C):
    folder = _C.cache_folder()
    if folder is None:
        return [("disk cache", "off")]
    files, size = _C.cache_usage()
    return [("disk cache", folder), ("in it", f"{files} programs, {_size(size)}")]


def ops():
    from torch_tpu import _C

    rows = _C.ops()
    counts = {}
    for schema, route, note, topic in rows:
        topic = topic.rpartition("/")[2].removesuffix(".c")
        counts[route] = counts.get(route, 0) + 1
        print(f"{route:<13}  {topic:<12}  {schema}" + (f"  # {note}" if note else ""))
    print(f"{len(rows)} entries: " + ", ".join(f"{count} by {route}" for route, count in sorted(counts.items())))
    return 0


def cache(action, file):
    import time

    from torch_tpu import _C, _cache_files

    try:
        if action == "list":
            for path in _cache_files.programs():
                found = path.stat()
                print(f"{path.stem}  {found.st_size:>9}  {time.strftime('%Y-%m-%d %H:%M:%S', time.localtime(found.st_mtime))}")
        elif action == "export":
            count, size = _cache_files.export_to(file)
            print(f"{count} programs, {_size(size)}, written to {file}")
        elif action == "import":
            count, fresh = _cache_files.import_from(file)
            print(f"{count} programs read from {file}, {fresh} of them new here")
        else:
            if action == "clear":
                _C.cache_clear()
            _rows(_cache_rows(_C))
    except (_cache_files.CacheError, OSError) as error:
        print(error, file=sys.stderr)
        return 1
    return 0


def main(argv=None):
    parser = argparse.ArgumentParser(prog="python -m torch_tpu")
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("info", help="what is installed, found and running")
    commands.add_parser("ops", help="the op table: route, topic, schema, reason")
    actions = commands.add_parser("cache", help="compiled programs on disk").add_subparsers(dest="action", required=True)
    actions.add_parser("info", help="where they are, how many")
    actions.add_parser("list", help="key, bytes, last use")
    actions.add_parser("clear", help="remove them")
    for name, text in (("export", "write them to an archive"), ("import", "add those of an archive made with the same plugin")):
        actions.add_parser(name, help=text).add_argument("file")
    arguments = parser.parse_args(argv)

    from torch_tpu import _loader

    if _loader.error is not None:
        print(f"torch_tpu could not be loaded: {_loader.error!r}", file=sys.stderr)
        return 1
    if arguments.command == "info":
        return info()
    if arguments.command == "ops":
        return ops()
    return cache(arguments.action, getattr(arguments, "file", None))


if __name__ == "__main__":
    sys.exit(main())
