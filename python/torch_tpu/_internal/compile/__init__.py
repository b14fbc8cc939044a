# SPDX-License-Identifier: Apache-2.0
"""Importing this registers the Dynamo backend "tpu"; the entry point does so for everybody else."""

from torch_tpu._internal.compile import _backend  # noqa: F401
