# SPDX-License-Identifier: Apache-2.0
"""Measures JAX op by op (eager, no jit) in a process of its own: the same cases as torch_cases.py, where it has them."""

import json
import os
import statistics
import sys
import time

os.environ.setdefault("JAX_PLATFORMS", "cpu")

import jax

REPEATS, CALLS = 15, 2000


def host_cost(step, calls=CALLS):
    times = []
    jax.block_until_ready(step())
    for _ in range(REPEATS):
        start = time.perf_counter()
        for _ in range(calls):
            last = step()
        times.append((time.perf_counter() - start) / calls * 1e6)
        jax.block_until_ready(last)
    return statistics.median(times)


def main():
    x = jax.random.uniform(jax.random.key(0), (16, 16))
    y = jax.random.uniform(jax.random.key(1), (16, 16))
    table = jax.random.uniform(jax.random.key(2), (64, 16))
    rows = jax.numpy.arange(0, 64, 4)
    held = [x]

    def add_to_held():  # arrays of JAX do not change: the nearest thing to add_
        held[0] = held[0] + y
        return held[0]

    def chain():
        z = x
        for _ in range(20):
            z = z + y
            z = z * 0.5
            z = z - y
        return z

    cases = {
        "add": lambda: host_cost(lambda: x + y),
        "add_in_place": lambda: host_cost(add_to_held),
        "times_number": lambda: host_cost(lambda: x * 0.3),
        "view": lambda: host_cost(lambda: x[3:9, 2:7].T + 1),
        "index": lambda: host_cost(lambda: jax.numpy.take(table, rows, axis=0)),
        "chain": lambda: host_cost(chain, CALLS // 40) / 60,
    }
    chosen = sys.argv[1:] or list(cases)
    print(json.dumps({name: case() for name, case in cases.items() if name in chosen}))


if __name__ == "__main__":
    main()
