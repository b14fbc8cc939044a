# SPDX-License-Identifier: Apache-2.0
"""PyTorch's databases of operators, modules, optimizers and lists on tpu, each entry isolated (isolate.py).

    python tests/opdb.py                        what ./dev test runs: f32 with its kinds, the other dtypes by fixed samples, ...
    python tests/opdb.py --full --report docs/coverage.md      everything; resumed where it was interrupted, if nothing was built since
    python tests/opdb.py --only softmax,mm --dtypes bfloat16,int64 --kinds forward

Expected failures stand in tests/opdb_expected.txt, `entry kind dtype: reason` (with * and ?); a line whose checks pass with all their
samples is an error. The last line is "N passed, N failed"."""
import argparse
import collections
import fnmatch
import hashlib
import importlib
import importlib.metadata
import json
import os
import pathlib
import statistics
import sys

import isolate

HERE = pathlib.Path(__file__).resolve().parent
EXPECTED = HERE / "opdb_expected.txt"
OTHER = "bfloat16,float16,float64,int64,int32,int16,int8,uint8,bool,complex64,complex128,uint16,uint32,uint64"
# (database, dtypes, kinds, samples an entry; 0: all)
QUICK = [
    ("opcheck", "float32", "forward,grad,inplace,out,error", 3),
    ("opcheck", "bfloat16,int64,bool,complex64", "forward", 1),
    ("opcheck", "float64", "gradcheck", 1),
    ("opforeach", "float32,bfloat16,int64,bool,complex64", "forward,inplace", 3),
    ("opmodule", "float32", "train", 1),
    ("opoptim", "float32", "single,foreach,fused,scaler", 1),
]
FULL = [
    ("opcheck", "float32", "forward,grad,inplace,out,noncontig,error", 0),
    ("opcheck", OTHER, "forward", 0),
    ("opcheck", "bfloat16,float16", "grad", 0),
    ("opcheck", "float64", "gradcheck,gradgrad,fwd_ad", 2),
    ("opforeach", "float32,bfloat16,float16,float64,int64,int32,uint8,bool,complex64,complex128", "forward,inplace", 0),
    ("opforeach", "float32,complex64", "grad", 0),
    ("opmodule", "float32,float64", "eval,train,moved", 0),
    ("opoptim", "float32,bfloat16", "single,foreach,fused,capturable,scaler", 0),
    ("opcost", "float32", "cost", 1),
]


def expected():
    found = {}
    for line in EXPECTED.read_text().splitlines() if EXPECTED.exists() else []:
        if line.strip() and not line.startswith("#"):
            key, _, reason = line.partition(":")
            if len(key.split()) != 3 or not reason.strip():
                sys.exit(f"{EXPECTED.name}: expected `entry kind dtype: reason`, got {line!r}")
            found[tuple(key.split())] = reason.strip()
    return found


def line_of(listed, key):
    """The line that names this check, or whose pattern does."""
    return key if key in listed else next((line for line in listed if all(map(fnmatch.fnmatchcase, key, line))), None)


def build_id():
    """A hash of what is tested: the extension and the checks."""
    digest = hashlib.sha256()
    for path in [HERE.parent / "python" / "torch_tpu" / "_C.so", *sorted(HERE.glob("*.py")), *sorted((HERE / "python").glob("op*.py"))]:
        digest.update(path.resolve().read_bytes() if path.exists() else b"")
    return digest.hexdigest()


def resumed(path):
    """The answers of an interrupted run with the same build, by request; starts the file over otherwise."""
    lines = path.read_text().splitlines() if path.exists() else []
    if not lines or lines[0] != build_id():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(build_id() + "\n")
        return {}
    found = {}
    for line in lines[1:]:
        try:
            request, answer = json.loads(line)
        except ValueError:  # cut off while being written
            continue
        found[json.dumps(request, sort_keys=True)] = answer
    return found


class Count:
    """What passed and failed, and what the report needs."""

    def __init__(self):
        self.listed = expected()
        self.table = collections.defaultdict(lambda: [0, 0])
        self.reasons, self.fallbacks = {}, collections.defaultdict(set)
        self.costs, self.stale = {}, {}
        self.torch = importlib.metadata.version("torch").partition("+")[0]
        self.passed = self.failed = self.known = 0

    def add(self, request, answer):
        for name in answer["fallbacks"]:
            self.fallbacks[name].add(request["entry"])
        if "cost" in answer["notes"]:
            self.costs[request["entry"]] = answer["notes"]["cost"]
        for kind, why in answer["results"].items():
            key = (request["entry"], kind, request["dtype"])
            cell = self.table[request["database"], request["dtype"], kind]
            cell[0] += not why
            cell[1] += 1
            line = line_of(self.listed, key)
            if line and request["limit"] == 0:
                self.stale[line] = self.stale.get(line, True) and not why
            if why and line:
                self.known += 1
                self.reasons[key] = self.listed[line]
            elif why:
                self.failed += 1
                self.reasons[key] = why
                print(f"FAIL {' '.join(key)}: {why}", flush=True)
            else:
                self.passed += 1

    def end(self):
        """A line all of whose checks passed, with all their samples, counts as a failure."""
        for line in (line for line, stale in self.stale.items() if stale):
            self.failed += 1
            print(f"FAIL {' '.join(line)}: passes, but is listed in {EXPECTED.name}", flush=True)

    def report(self, path, limit):
        samples = f"{limit} samples an entry (`--limit {limit}`)" if limit else "all samples"
        lines = ["# Coverage of PyTorch's databases", "",
                 f"Generated by `./dev test --full` (tests/opdb.py), on the CPU plugin, torch {self.torch}, {samples}.", "",
                 "| database | dtype | kind | passed | total |", "|---|---|---|---|---|"]
        lines += [f"| {' | '.join(key)} | {good} | {total} |" for key, (good, total) in sorted(self.table.items())]
        lines += ["", "## Not passing, with the reason", ""]
        lines += [f"- {' '.join(key)}: {why}" for key, why in sorted(self.reasons.items())]
        lines += ["", "## Run on the CPU", ""]
        lines += [f"- `{name}`: {', '.join(sorted(entries)[:6])}" for name, entries in sorted(self.fallbacks.items())]
        lines += self.cost_lines() if self.costs else []
        pathlib.Path(path).write_text("\n".join(lines) + "\n")

    def cost_lines(self):
        """Host cost of warm calls against x + y, the dearest ones, and calls of several launches."""
        ratios = {entry: c["us"] / c["plain_us"] for entry, c in self.costs.items()}
        lines = ["", "## Host cost of a warm call", "", "Against `x + y` measured beside it, smallest sample, strict mode: "
                 f"median {statistics.median(ratios.values()):.2f} over {len(ratios)} entries. The 30 dearest:", "",
                 "| entry | times x + y | launches | why |", "|---|---|---|---|"]
        for entry in sorted(ratios, key=ratios.get, reverse=True)[:30]:
            c = self.costs[entry]
            lines.append(f"| {entry} | {ratios[entry]:.1f} | {c['launches']} | {self.why_dear(c)} |")
        several = [entry for entry, c in self.costs.items() if c["single"] and c["launches"] > 1]
        lines += ["", "## One result, several launches", "", "PyTorch composes these of several operators before they reach the device; "
                  "each operator is one launch.", "", "| entry | operators |", "|---|---|"]
        return lines + [f"| {entry} | {self.costs[entry]['calls']} |" for entry in sorted(several)]

    @staticmethod
    def why_dear(cost):
        if cost["on_cpu"]:
            return "runs on the CPU"
        return f"{cost['calls']} operators of PyTorch" if cost["calls"] > 1 else "one operator: PyTorch's Python or the launch itself"


def titles(database, only):
    os.environ["TORCH_DEVICE_BACKEND_AUTOLOAD"] = "0"  # this process only needs the names
    sys.path.insert(0, str(HERE / "python"))
    table = importlib.import_module(database).entries()
    del os.environ["TORCH_DEVICE_BACKEND_AUTOLOAD"]
    wanted = set(only.split(",")) if only else None
    return [t for t, entry in table.items() if wanted is None or t in wanted or getattr(entry, "name", t) in wanted]


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--full", action="store_true")
    ap.add_argument("--only", default="")
    ap.add_argument("--limit", type=int)
    ap.add_argument("--database", default="opcheck", help="with --dtypes and --kinds: what to run instead of the usual selection")
    ap.add_argument("--dtypes")
    ap.add_argument("--kinds", default="forward")
    ap.add_argument("--width", type=int, default=2)
    ap.add_argument("--timeout", type=int, default=300, help="seconds an entry")
    ap.add_argument("--progress", action="store_true", help="name each entry that is done on stderr")
    ap.add_argument("--report")
    args = ap.parse_args()
    selection = [(args.database, args.dtypes, args.kinds, args.limit or 0)] if args.dtypes else FULL if args.full else QUICK
    requests = []
    for database, dtypes, kinds, limit in selection:
        for title in titles(database, args.only):
            for dtype in dtypes.split(","):
                requests.append({"database": database, "entry": title, "dtype": dtype, "kinds": kinds,
                                 "limit": limit if args.limit is None else args.limit})
    count, state = Count(), HERE.parent / "build" / "opdb-full.jsonl"
    done = resumed(state) if args.full else {}
    todo = []
    for request in requests:
        answer = done.get(json.dumps(request, sort_keys=True))
        if answer is None:
            todo.append(request)
        else:
            count.add(request, answer)

    def each(request, answer):
        count.add(request, answer)
        if args.progress:
            print(" ".join(request[k] for k in ("entry", "dtype", "kinds")), file=sys.stderr, flush=True)
        if args.full:
            with state.open("a") as f:
                f.write(json.dumps([request, answer]) + "\n")

    isolate.run(todo, args.width, args.timeout, each)
    count.end()
    for name, entries in sorted(count.fallbacks.items()):
        print(f"on the CPU: {name} ({', '.join(sorted(entries)[:4])})")
    print(f"expected failures: {count.known}")
    if args.report:
        count.report(args.report, args.limit)
    print(f"{count.passed} passed, {count.failed} failed")
    return count.failed != 0


if __name__ == "__main__":
    sys.exit(main())
