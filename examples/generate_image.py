# SPDX-License-Identifier: Apache-2.0
"""Makes an image with a diffusion model: noise is taken away step by step (DDPM), by a UNet or a diffusion transformer.

No weights come with this repository, so the model is small and random and the image is abstract; give --model the folder of a real pipeline.

    ./dev run examples/generate_image.py
    ./dev run examples/generate_image.py --kind dit --steps 50 --out picture.png
"""

import argparse
import os

os.environ.setdefault("HF_HUB_OFFLINE", "1")  # nothing is downloaded

import torch
from diffusers import DDPMPipeline, DDPMScheduler, DiTTransformer2DModel, UNet2DModel
from diffusers.utils import logging
from PIL import Image


def unet(size):
    return UNet2DModel(sample_size=size, in_channels=3, out_channels=3, layers_per_block=1, block_out_channels=(32, 64), norm_num_groups=8,
                       attention_head_dim=8, down_block_types=("DownBlock2D", "AttnDownBlock2D"),
                       up_block_types=("AttnUpBlock2D", "UpBlock2D"))


def dit(size):
    return DiTTransformer2DModel(num_attention_heads=4, attention_head_dim=16, in_channels=3, out_channels=3, num_layers=2,
                                 sample_size=size, patch_size=2, num_embeds_ada_norm=10, norm_num_groups=8)


def denoise(model, size, steps, device):
    """DDPM by hand, for a model that is told a class besides the step."""
    scheduler = DDPMScheduler(num_train_timesteps=1000)
    scheduler.set_timesteps(steps)
    source = torch.Generator().manual_seed(0)  # on the CPU: the same image on every device
    sample = torch.randn(1, 3, size, size, generator=source).to(device)
    label = torch.tensor([7], device=device)
    for time in scheduler.timesteps:
        noise = model(sample, timestep=time[None].to(device), class_labels=label).sample
        sample = scheduler.step(noise, time, sample, generator=source).prev_sample
    return sample


def main():
    parser = argparse.ArgumentParser(description="Makes an image with a diffusion model.")
    parser.add_argument("--kind", choices=("unet", "dit"), default="unet")
    parser.add_argument("--model", help="folder of a DDPM pipeline; default: a small random one")
    parser.add_argument("--size", type=int, default=32)
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--out", default="image.png")
    parser.add_argument("--device", help="default: the accelerator of this machine, else cpu")
    arguments = parser.parse_args()
    device = torch.accelerator.current_accelerator()
    device = torch.device(arguments.device or device or "cpu")
    logging.set_verbosity_error()
    torch.manual_seed(0)

    with torch.inference_mode():
        if arguments.kind == "dit":
            sample = denoise(dit(arguments.size).eval().to(device), arguments.size, arguments.steps, device)
            pixels = ((sample[0] / 2 + 0.5).clamp(0, 1) * 255).round().to(torch.uint8)
            image = Image.fromarray(pixels.permute(1, 2, 0).cpu().numpy())
        else:
            if arguments.model:
                pipeline = DDPMPipeline.from_pretrained(arguments.model)
            else:
                pipeline = DDPMPipeline(unet(arguments.size), DDPMScheduler(num_train_timesteps=1000))
            pipeline.set_progress_bar_config(disable=True)
            pipeline.to(device)
            source = torch.Generator().manual_seed(0)  # on the CPU: the same image on every device
            image = pipeline(num_inference_steps=arguments.steps, generator=source).images[0]
    image.save(arguments.out)
    print(f"{device}: {image.width} x {image.height} pixels after {arguments.steps} steps, in {arguments.out}")


if __name__ == "__main__":
    main()
