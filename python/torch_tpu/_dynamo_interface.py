# SPDX-License-Identifier: Apache-2.0
"""What Dynamo asks about the device. Imported with `torch._dynamo.device_interface`, never before."""

import torch

from torch_tpu import _device


def install(module):
    """Defines the interface and puts it where PyTorch's own would be."""

    class TpuInterface(module.DeviceInterface):
        device = _device.device
        Event = torch.Event
        Stream = torch.Stream

        class Worker:
            @staticmethod
            def set_device(device):
                _device.set_device(device)

            @staticmethod
            def current_device():
                return _device.current_device()

            @staticmethod
            def get_device_properties(device=None):
                return _device.get_device_properties(device)

        current_device = staticmethod(_device.current_device)
        set_device = staticmethod(_device.set_device)
        device_count = staticmethod(_device.device_count)
        is_available = staticmethod(_device.is_available)
        exchange_device = staticmethod(_device._exchange_device)
        maybe_exchange_device = staticmethod(_device._maybe_exchange_device)
        stream = staticmethod(_device.stream)
        current_stream = staticmethod(_device.current_stream)
        set_stream = staticmethod(_device.set_stream)
        synchronize = staticmethod(_device.synchronize)
        get_compute_capability = staticmethod(_device.get_compute_capability)
        memory_allocated = staticmethod(_device.memory_allocated)

        @staticmethod
        def _set_stream_by_id(stream_id, device_index, device_type):
            _device.set_stream(torch.Stream(stream_id=stream_id, device_index=device_index, device_type=device_type))

        @staticmethod
        def is_bf16_supported(including_emulation=False):
            return True

        @classmethod
        def is_dtype_supported(cls, dtype, including_emulation=False):
            return dtype in _device._dtypes()

    module.TpuInterface = TpuInterface
    if module._device_initialized:
        module.register_interface_for_device("tpu", TpuInterface)
