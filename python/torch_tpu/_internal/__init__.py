# SPDX-License-Identifier: Apache-2.0
"""Names that other packages import from here. New code uses torch.tpu."""
