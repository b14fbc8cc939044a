# SPDX-License-Identifier: Apache-2.0
"""The cases of train_cases.py as JAX programs: one jit for loss, gradients and AdamW, parameters donated. `jax_train.py [CASE...]` prints
one JSON object of milliseconds. Started by bench.py, on JAX's own CPU or, by JAX's environment variables, on our plugin."""

import json
import statistics
import sys
import time

import jax
import jax.numpy as jnp

LAYOUTS = {"cnn": ("NCHW", "OIHW", "NCHW"), "cnn_last": ("NHWC", "HWIO", "NHWC")}


class Keys:
    def __init__(self):
        self.key = jax.random.key(0)

    def uniform(self, *shape, scale=0.05):
        self.key, key = jax.random.split(self.key)
        return jax.random.uniform(key, shape, minval=-scale, maxval=scale)


def linear(keys, inputs, outputs):
    return {"w": keys.uniform(outputs, inputs), "b": keys.uniform(outputs)}


def apply_linear(p, x):
    return x @ p["w"].T + p["b"]


def layer_norm(p, x):
    mean = x.mean(-1, keepdims=True)
    var = ((x - mean) ** 2).mean(-1, keepdims=True)
    return (x - mean) * jax.lax.rsqrt(var + 1e-5) * p["w"] + p["b"]


def cross_entropy(logits, labels):
    return -jnp.take_along_axis(jax.nn.log_softmax(logits), labels[..., None], -1).mean()


def gpt(layers, width, heads, length, batch, vocabulary):
    keys = Keys()
    norm = lambda: {"w": jnp.ones(width), "b": jnp.zeros(width)}
    block = lambda: {"n1": norm(), "n2": norm(), "qkv": linear(keys, width, 3 * width), "out": linear(keys, width, width),
                     "up": linear(keys, width, 4 * width), "down": linear(keys, 4 * width, width)}
    params = {"token": keys.uniform(vocabulary, width), "place": keys.uniform(length, width),
              "blocks": [block() for _ in range(layers)], "norm": norm(), "head": keys.uniform(vocabulary, width)}
    tokens = jax.random.randint(jax.random.key(1), (batch, length + 1), 0, vocabulary)

    def attention(p, x):
        b, t, c = x.shape
        q, k, v = apply_linear(p["qkv"], x).reshape(b, t, 3, heads, c // heads).transpose(2, 0, 3, 1, 4)
        scores = q @ k.swapaxes(-1, -2) * (c // heads) ** -0.5
        scores = jnp.where(jnp.tril(jnp.ones((t, t), bool)), scores, -jnp.inf)
        return apply_linear(p["out"], (jax.nn.softmax(scores) @ v).swapaxes(1, 2).reshape(b, t, c))

    def loss(params, tokens):
        x = params["token"][tokens[:, :-1]] + params["place"][jnp.arange(length)]
        for p in params["blocks"]:
            x = x + attention(p, layer_norm(p["n1"], x))
            x = x + apply_linear(p["down"], jax.nn.gelu(apply_linear(p["up"], layer_norm(p["n2"], x))))
        return cross_entropy(layer_norm(params["norm"], x) @ params["head"].T, tokens[:, 1:])

    return params, loss, (tokens,)


def mlp():
    keys = Keys()
    params = [linear(keys, 256, 512), linear(keys, 512, 256)]
    x, y = keys.uniform(32, 256, scale=1.0), keys.uniform(32, 256, scale=1.0)

    def loss(params, x, y):
        return ((apply_linear(params[1], jax.nn.relu(apply_linear(params[0], x))) - y) ** 2).mean()

    return params, loss, (x, y)


def cnn(layout):
    keys = Keys()
    last = layout[0] == "NHWC"
    kernel = lambda o, i: {"w": keys.uniform(3, 3, i, o) if last else keys.uniform(o, i, 3, 3), "b": keys.uniform(o)}
    params = {"convs": [kernel(16, 3), kernel(32, 16), kernel(32, 32)], "out": linear(keys, 32, 10)}
    x = keys.uniform(8, 32, 32, 3, scale=1.0) if last else keys.uniform(8, 3, 32, 32, scale=1.0)
    y = jax.random.randint(jax.random.key(1), (8,), 0, 10)

    def loss(params, x, y):
        for p, stride in zip(params["convs"], (1, 2, 1)):
            x = jax.lax.conv_general_dilated(x, p["w"], (stride, stride), ((1, 1), (1, 1)), dimension_numbers=layout)
            x = jax.nn.relu(x + (p["b"] if last else p["b"][:, None, None]))
        return cross_entropy(apply_linear(params["out"], x.mean((1, 2) if last else (2, 3))), y)

    return params, loss, (x, y)


MODELS = {
    "small_gpt": lambda: gpt(2, 64, 4, 16, 1, 512),
    "mlp": mlp,
    "gpt": lambda: gpt(4, 128, 4, 64, 4, 512),
    "cnn": lambda: cnn(LAYOUTS["cnn"]),
    "cnn_last": lambda: cnn(LAYOUTS["cnn_last"]),
}


def adamw(p, g, m, v, count, lr=1e-3, b1=0.9, b2=0.999, eps=1e-8, decay=1e-2):
    p = p * (1 - lr * decay)
    m = m + (1 - b1) * (g - m)
    v = b2 * v + (1 - b2) * g * g
    return p - lr / (1 - b1**count) * m / (jnp.sqrt(v) / jnp.sqrt(1 - b2**count) + eps), m, v


def step_ms(name, steps=20, rounds=7):
    """Milliseconds a training step, its loss read."""
    if name == "small_ops":
        x, y = Keys().uniform(16, 16), Keys().uniform(16, 16)

        def chain(x, y):
            z = x
            for _ in range(20):
                z = z + y
                z = z * 0.5
                z = z - y
            return z.sum()

        compiled = jax.jit(chain)
        return measure(lambda state: (state, compiled(x, y)), None, steps, rounds)
    params, loss, data = MODELS[name]()

    if name.startswith("cnn"):
        step = jax.jit(jax.value_and_grad(loss))
        run = lambda state: (state, step(params, *data)[0])
        state = None
    else:

        def update(state, *data):
            params, m, v, count = state
            value, grads = jax.value_and_grad(loss)(params, *data)
            count = count + 1
            leaves, tree = jax.tree.flatten(params)
            new = [adamw(*each, count) for each in zip(leaves, *map(jax.tree.leaves, (grads, m, v)))]
            return (*(jax.tree.unflatten(tree, part) for part in zip(*new)), count), value

        step = jax.jit(update, donate_argnums=0)
        run = lambda state: step(state, *data)
        zeros = lambda: jax.tree.map(jnp.zeros_like, params)
        state = (params, zeros(), zeros(), jnp.float32(0))
    return measure(run, state, steps, rounds)


def measure(run, state, steps, rounds):
    for _ in range(3):
        state, value = run(state)
    value.block_until_ready()
    times = []
    for _ in range(rounds):
        start = time.perf_counter()
        for _ in range(steps):
            state, value = run(state)
            float(value)
        times.append((time.perf_counter() - start) / steps * 1e3)
    return statistics.median(times)


def main():
    names = sys.argv[1:] or ["small_ops", *MODELS]
    print(json.dumps({name: step_ms(name, steps=200 if name == "small_ops" else 20) for name in names}))


if __name__ == "__main__":
    main()
