# SPDX-License-Identifier: Apache-2.0
"""Helpers by the names that other packages use."""
