# SPDX-License-Identifier: Apache-2.0
"""Runs a folder of PyTorch's own device test files (test_*.py) on tpu and prints what passed and why the rest did not.

    python tools/pytorch_tests.py FOLDER [FILE...]         every device test of every file, or of these files (test_indexing, ...)
    python tools/pytorch_tests.py FOLDER --every 10        each tenth test of a file: a first look
    python tools/pytorch_tests.py FOLDER --match nonzero   the tests with this in their names
    python tools/pytorch_tests.py FOLDER --retry           those that failed before, again
    python tools/pytorch_tests.py FOLDER --page OUT.md     the table of what is recorded, as a page

One worker process takes one test after another; one that dies or hangs costs that test alone and is replaced. Results are kept in
FOLDER/results.jsonl, so a run that was stopped goes on where it was. A test that fails is run on the CPU as well (its twin in the
same file): one that fails or is skipped there too says nothing about tpu (the file is of another version of PyTorch, or leaves the
test out for each device it knows by name)."""
import argparse
import collections
import importlib.util
import json
import os
import pathlib
import re
import resource
import select
import signal
import subprocess
import sys
import time
import unittest

NAMES = {"tpu": ("tpu", "privateuse1"), "cpu": ("cpu",)}
ROOM = 3 << 20  # kilobytes: a worker that has grown to this is replaced after its test


class TooLong(BaseException):
    """A test's time is up; not an Exception, so that no test catches it."""


def tests_of(suite):
    for item in suite:
        if isinstance(item, unittest.TestSuite):
            yield from tests_of(item)
        else:
            yield item


def load(path, device, plain):
    """The device tests of a file: {name: test}, `TestShape.test_flip` standing for TestShapePRIVATEUSE1.test_flip_tpu."""
    sys.path.insert(0, str(path.parent))
    os.chdir(path.parent)
    sys.argv = [str(path)]
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = sys.modules[path.stem] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    found = {}
    for test in tests_of(unittest.defaultTestLoader.loadTestsFromModule(module)):
        kind = getattr(type(test), "device_type", "plain" if device == "tpu" else None)
        if kind in NAMES[device] or kind == "plain" and plain:
            owner, _, name = test.id().split(".", 1)[1].partition(".")
            found[re.sub("(?i)(" + "|".join(NAMES[device]) + ")$", "", owner) + "." + re.sub(f"_{device}(?=_|$)", "", name)] = test
    return found


def cause(trace):
    """The line of a traceback that names the failure, with the numbers that differ from case to case left out."""
    lines = [line for line in trace.splitlines() if re.match(r"[A-Za-z_.]+(Error|Exception|Long|Warning|Interrupt|Exit|NotRegistered)\b", line)]
    line = lines[-1] if lines else (trace.strip().splitlines() or ["?"])[-1]
    return re.sub(r"\d+(\.\d+)?(e[-+]?\d+)?", "#", line)[:160]


def run_one(test, limit):
    def stop(*_):
        raise TooLong

    signal.signal(signal.SIGALRM, stop)
    result = unittest.TestResult()
    signal.alarm(limit)
    try:
        unittest.TestSuite([test]).run(result)
    except TooLong:
        return "slow", f"longer than {limit} s", ""
    finally:
        signal.alarm(0)
    if result.errors or result.failures:
        trace = (result.errors + result.failures)[0][1]
        return ("slow" if "TooLong" in trace else "failed"), cause(trace), trace[-3000:]
    if result.skipped:
        return "skipped", result.skipped[0][1].splitlines()[0][:160], ""
    if result.unexpectedSuccesses:
        return "failed", "passes, though the file expects a failure", ""
    return "passed", "", ""


def work(path, device, limit, plain):
    """A worker: the list of names first, then one name a line on stdin, one answer a line on stdout."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # whatever a test prints is not an answer
    try:
        found = load(pathlib.Path(path), device, plain)
    except BaseException as error:  # noqa: B036  (a file may call sys.exit when imported)
        print(json.dumps({"error": f"{type(error).__name__}: {error}"}), file=answers, flush=True)
        return
    print(json.dumps({"names": list(found)}), file=answers, flush=True)
    for line in sys.stdin:
        name = line.strip()
        state, why, trace = run_one(found[name], limit) if name in found else ("missing", "no such test for this device", "")
        print(json.dumps({"state": state, "why": why, "trace": trace}), file=answers, flush=True)
        if resource.getrusage(resource.RUSAGE_SELF).ru_maxrss > ROOM:
            break
    answers.flush()
    os._exit(0)  # no time spent on taking thousands of tests apart


class Worker:
    def __init__(self, path, device, arguments, log):
        self.command = [sys.executable, __file__, "--work", str(path), device, str(arguments.limit), str(arguments.plain)]
        self.limit, self.log, self.process = arguments.limit, log, None
        self.environment = dict(os.environ, PYTORCH_TESTING_DEVICE_ONLY_FOR=device, PYTHONFAULTHANDLER="1")

    def answer(self, seconds):
        ready, _, _ = select.select([self.process.stdout], [], [], seconds)
        line = self.process.stdout.readline() if ready else ""
        return json.loads(line) if line else None

    def start(self):
        self.process = subprocess.Popen(self.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.log, text=True, env=self.environment)
        first = self.answer(300) or {"error": "the file could not be read in 300 s, or ended the process"}
        if "error" in first:
            self.stop()
        return first

    def stop(self):
        if self.process:
            self.process.kill()
            self.process.wait()
        self.process = None

    def ask(self, name):
        for _ in range(2):  # a worker that left because it had grown is no failure of this test
            if not self.process or self.process.poll() is not None:
                self.stop()
                first = self.start()
                if "error" in first:
                    return {"state": "failed", "why": first["error"], "trace": ""}
            try:
                print(name, file=self.process.stdin, flush=True)
            except BrokenPipeError:
                continue
            answer = self.answer(2 * self.limit + 30)
            if answer:
                return answer
            hung = self.process.poll() is None
            if not hung and self.process.returncode == 0:
                continue
            self.log.write(f"^^ {name}\n")
            self.log.flush()
            why = "hang" if hung else f"signal {-self.process.returncode}" if self.process.returncode < 0 else f"exit {self.process.returncode}"
            self.stop()
            return {"state": "crashed", "why": why, "trace": ""}
        return {"state": "crashed", "why": "exit 0", "trace": ""}


def recorded(folder):
    path, kept = folder / "results.jsonl", {}
    if path.exists():
        for line in path.read_text().splitlines():
            row = json.loads(line)
            kept[row["file"], row["name"]] = row
    return kept


def run_file(path, arguments, kept, out, log):
    worker, twin = Worker(path, "tpu", arguments, log), Worker(path, "cpu", arguments, log)
    first = worker.start()
    names = first.get("names", ["(import)"])
    chosen = [name for name in names[:: arguments.every] if not arguments.match or arguments.match in name]
    if arguments.retry:
        chosen = [name for name in names if kept.get((path.stem, name), {}).get("state") in ("failed", "crashed", "slow")]
    else:
        chosen = [name for name in chosen if (path.stem, name) not in kept]
    for name in chosen:
        begun = time.time()
        row = {"state": "failed", "why": first["error"], "trace": ""} if "error" in first else worker.ask(name)
        if row["state"] == "failed" and "error" not in first:
            other = twin.ask(name)
            if other["state"] in ("failed", "skipped"):
                row["state"], row["why"] = "cpu", f"{row['why']} [CPU: {other['why']}]"
        row.update(file=path.stem, name=name, seconds=round(time.time() - begun, 1))
        kept[path.stem, name] = row
        out.write(json.dumps(row) + "\n")
        out.flush()
        if row["state"] not in ("passed", "skipped", "cpu"):
            print(f"{row['state'].upper()} {path.stem}::{name} [{row['seconds']}s]: {row['why']}", flush=True)
        if arguments.until and time.time() > arguments.until:
            break
    worker.stop()
    twin.stop()


def page(kept):
    files = collections.defaultdict(collections.Counter)
    kinds = collections.defaultdict(list)
    for (file, name), row in kept.items():
        files[file][row["state"]] += 1
        if row["state"] not in ("passed", "skipped", "cpu"):
            kinds[file, row["state"], row["why"]].append(name)
    lines = ["| file | passed | failed | crashed | too slow | not on the CPU either | skipped by the file |", "|---|---|---|---|---|---|---|"]
    total = collections.Counter()
    for file, count in sorted(files.items()):
        total.update(count)
        lines.append(f"| {file} | " + " | ".join(str(count[key]) for key in ("passed", "failed", "crashed", "slow", "cpu", "skipped")) + " |")
    lines.append("| all | " + " | ".join(str(total[key]) for key in ("passed", "failed", "crashed", "slow", "cpu", "skipped")) + " |")
    if kinds:
        lines += ["", "What failed, by kind:", ""]
    for (file, state, why), names in sorted(kinds.items(), key=lambda item: (item[0][0], -len(item[1]))):
        lines.append(f"- {file}, {len(names)} {state}: {why} ({', '.join(names[:3])}{', ...' if len(names) > 3 else ''})")
    return "\n".join(lines), total


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("files", nargs="*")
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--match")
    parser.add_argument("--retry", action="store_true")
    parser.add_argument("--plain", action="store_true", help="the tests that are not made per device as well")
    parser.add_argument("--limit", type=int, default=60, help="seconds a test may take")
    parser.add_argument("--minutes", type=float, help="stop after this long")
    parser.add_argument("--page", type=pathlib.Path)
    arguments = parser.parse_args()
    folder = arguments.folder.resolve()
    kept = recorded(folder)
    arguments.until = time.time() + 60 * arguments.minutes if arguments.minutes else None
    if not arguments.page:
        paths = [folder / f"{name.removesuffix('.py')}.py" for name in arguments.files] or sorted(folder.glob("test_*.py"))
        with open(folder / "results.jsonl", "a") as out, open(folder / "log.txt", "a") as log:
            for path in paths:
                if not arguments.until or time.time() < arguments.until:
                    run_file(path, arguments, kept, out, log)
        shown = {key: row for key, row in kept.items() if not arguments.files or key[0] in {path.stem for path in paths}}
    else:
        shown = kept
    text, total = page(shown)
    if arguments.page:
        arguments.page.write_text(text + "\n")
    else:
        print(text)
    bad = total["failed"] + total["crashed"] + total["slow"]
    print(f"{total['passed']} passed, {bad} failed")
    return bool(bad)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--work"]:
        sys.exit(work(sys.argv[2], sys.argv[3], int(sys.argv[4]), sys.argv[5] == "True"))
    sys.exit(main())
