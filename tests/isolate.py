# SPDX-License-Identifier: Apache-2.0
"""Runs checks in worker processes, one entry after another: a crash or a hang costs that entry alone.

A *database* is a module of tests/python with `entries()` (title -> what PyTorch lists), `KINDS` (kind -> check(entry, dtype, limit))
and `serves(entry, dtype, kind)`; what a check returns is a note for the report. A worker reads one JSON request a line on stdin and
answers with one JSON line."""
import json
import os
import pathlib
import queue
import subprocess
import sys
import threading

HERE = pathlib.Path(__file__).resolve().parent


def work():
    sys.path.insert(0, str(HERE / "python"))
    import importlib
    import warnings

    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # whatever an op prints is not an answer
    warnings.filterwarnings("ignore")
    import torch

    databases = {}
    for line in sys.stdin:
        request = json.loads(line)
        name = request["database"]
        if name not in databases:
            module = importlib.import_module(name)
            databases[name] = (module, module.entries())
        module, table = databases[name]
        entry, dtype = table[request["entry"]], getattr(torch, request["dtype"])
        results, notes, before = {}, {}, dict(torch.tpu.fallbacks())
        for kind in request["kinds"].split(","):
            if not module.serves(entry, dtype, kind):
                continue
            try:
                note = module.KINDS[kind](entry, dtype, request["limit"])
                results[kind] = ""
                if note is not None:
                    notes[kind] = note
            except Exception as e:  # noqa: BLE001
                results[kind] = f"{type(e).__name__}: {' '.join(str(e).split())[:240]}"
        fallbacks = sorted(k for k, n in torch.tpu.fallbacks().items() if before.get(k) != n)
        answers.write(json.dumps({"results": results, "notes": notes, "fallbacks": fallbacks}) + "\n")
        answers.flush()


class Worker:
    def __init__(self):
        self.start()

    def start(self):
        env = dict(os.environ, OMP_NUM_THREADS="1", TORCH_TPU_FALLBACK=os.environ.get("TORCH_TPU_FALLBACK", "silent"))
        self.process = subprocess.Popen([sys.executable, str(HERE / "isolate.py")], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.DEVNULL, text=True, env=env)
        self.served = 0

    def stop(self):
        self.process.stdin.close()
        self.process.wait()

    def ask(self, request, timeout):
        if self.served >= 400:  # programs stay loaded; a fresh process bounds the memory
            self.stop()
            self.start()
        self.served += 1
        timer = threading.Timer(timeout, self.process.kill)
        timer.start()
        try:
            self.process.stdin.write(json.dumps(request) + "\n")
            self.process.stdin.flush()
            line = self.process.stdout.readline()
        except BrokenPipeError:
            line = ""
        alive = timer.is_alive()
        timer.cancel()
        if line:
            return json.loads(line)
        code = self.process.wait()
        self.start()
        why = f"killed by signal {-code}" if alive else f"no end after {timeout} s"
        return {"results": {kind: why for kind in request["kinds"].split(",")}, "notes": {}, "fallbacks": []}


def run(requests, width, timeout, each):
    """Asks for every request, `width` at once; `each(request, answer)` is called for every answer as it comes, one at a time."""
    todo, lock = queue.SimpleQueue(), threading.Lock()
    for request in requests:
        todo.put(request)

    def loop():
        worker = Worker()
        while True:
            try:
                request = todo.get_nowait()
            except queue.Empty:
                break
            answer = worker.ask(request, timeout)
            with lock:
                each(request, answer)
        worker.stop()

    threads = [threading.Thread(target=loop) for _ in range(width)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()


if __name__ == "__main__":
    work()
