"""Loads an exported policy with Hugging Face transformers and compares its log-probabilities with those that Turnwise sampled with.

    turnwise train --iterations 3 --out run
    cp run/checkpoint.safetensors after3.safetensors
    turnwise train --resume after3.safetensors --iterations 4 --out run     # step 3 is sampled by after3.safetensors
    turnwise export after3.safetensors --out model
    python check.py model run/episodes.jsonl 3

Needs the packages of requirements.txt. Prints the largest difference and fails above 1e-4 nats.
"""

import json
import sys

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer


def main(model_folder: str, episodes_file: str, iteration: int) -> None:
    model = AutoModelForCausalLM.from_pretrained(model_folder).eval()
    tokenizer = AutoTokenizer.from_pretrained(model_folder)
    largest, compared, episodes = 0.0, 0, 0
    with open(episodes_file, encoding="utf-8") as lines:
        for line in lines:
            episode = json.loads(line)
            if episode["iteration"] != iteration:
                continue
            episodes += 1
            trajectory = episode["trajectory"]
            ids = trajectory["tokens"]
            assert tokenizer(episode["text"])["input_ids"] == ids, "the tokenizer gives the tokens of the text"
            with torch.no_grad():
                log_probs = model(torch.tensor([ids])).logits[0].log_softmax(-1)
            for position, (sampled, expected) in enumerate(zip(trajectory["loss_mask"], trajectory["log_probs"])):
                if sampled:
                    found = log_probs[position - 1, ids[position]].item()
                    largest = max(largest, abs(found - expected))
                    compared += 1
    print(f"{compared} tokens of {episodes} episodes, largest difference {largest:.2e} nats")
    if compared == 0 or largest > 1e-4:
        sys.exit(1)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
