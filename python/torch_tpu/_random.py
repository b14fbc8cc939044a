# SPDX-License-Identifier: Apache-2.0
"""Random numbers: the part of torch.cuda.random. A state is 16 bytes: seed, offset. Seeding starts nothing."""

import torch

from torch_tpu import _C
from torch_tpu._index import index_of


def _generator(device=None):
    return _C.default_generator(index_of(device))


class _Generators:
    """The default generators, one a device, made when they are asked for."""

    def __len__(self):
        return _C.device_count()

    def __getitem__(self, index):
        if isinstance(index, slice):
            return tuple(self[i] for i in range(*index.indices(len(self))))
        if index < 0:
            index += len(self)
        if index != 0 and not 0 <= index < len(self):
            raise IndexError(f"expected a device index below {len(self)}, got {index}")
        return _C.default_generator(index)

    def __iter__(self):
        return (self[i] for i in range(len(self)))


default_generators = _Generators()


def get_rng_state(device="tpu"):
    """The state of a device's generator: a ByteTensor of 16 bytes."""
    return _generator(device).get_state()


def set_rng_state(new_state, device="tpu"):
    """Sets the state of a device's generator."""
    _generator(device).set_state(new_state.clone(memory_format=torch.contiguous_format))


def get_rng_state_all():
    """The states of all devices."""
    return [get_rng_state(i) for i in range(_C.device_count())]


def set_rng_state_all(new_states):
    """Sets the states of all devices."""
    for index, state in enumerate(new_states):
        set_rng_state(state, index)


def manual_seed(seed):
    """Seeds the current device's generator."""
    _generator().manual_seed(int(seed))


def manual_seed_all(seed):
    """Seeds all devices' generators."""
    seed = int(seed)
    _C.seed_all(seed & 0xFFFF_FFFF_FFFF_FFFF)


def seed():
    """Seeds the current device's generator with a number from the system."""
    _generator().seed()


def seed_all():
    """Seeds all devices' generators with one number from the system."""
    seed()
    manual_seed_all(initial_seed())


def initial_seed():
    """The current device's seed."""
    return _generator().initial_seed()
