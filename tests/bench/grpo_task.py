"""What grpo_pytorch.py and grpo_jax.py share: settings, the vocabulary, the search task, weights, and how steps are timed.

Both play the default search task (src/environment/search.rs says its rules) from the policy that ships with the page and make
the update that src/learner makes: one Adam step on the clipped token-mean GRPO loss with an entropy bonus, in micro-batches of
similar length, clipped by the norm of the gradient. Draws are not the crate's (they need not be: returns and lengths agree in
distribution), everything else is.

By hand:  python grpo_jax.py --steps 30        prints one line: seconds, tokens, return and success per step
From a runner:  python grpo_jax.py --serve     takes a number of steps a line on standard input, answers a JSON line
"""

import argparse
import dataclasses
import json
import pathlib
import statistics
import sys
import time

import numpy
from safetensors.numpy import load_file

# Tokens, as in src/vocabulary.rs.
QUESTION, QUESTION_MARK, NOTE, NONE, SEARCH, ANSWER, EOT, OBS, OBS_END, EQUALS, REDIRECT, ERR = 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 16
DIGIT, ENTITY = 20, 30
ENTITIES, PROMPT, OBSERVATION = 10, 5, 5
HOP_SHARES = (0.25, 0.30, 0.45)

WARM_START = pathlib.Path(__file__).parents[2] / "www/public/warm-start/search.safetensors"


@dataclasses.dataclass(frozen=True)
class Settings:
    """The defaults of src/config/experiment.rs with those of the search task; a runner overrides them by name."""

    groups: int = 16
    num_generations: int = 16
    turn_limit: int = 5
    turn_tokens: int = 4
    context_length: int = 40
    heads: int = 4
    gamma: float = 0.95
    epsilon: float = 0.2
    epsilon_high: float = 0.2
    entropy_coefficient: float = 0.01
    learning_rate: float = 1e-3
    max_grad_norm: float = 1.0
    micro_batches: int = 4
    adam_beta1: float = 0.9
    adam_beta2: float = 0.99
    seed: int = 0

    @property
    def rows(self):
        return self.groups * self.num_generations


@dataclasses.dataclass
class Step:
    """What one training step tells: mean discounted return, share of right answers, tokens of all episodes, loss."""

    mean_return: float
    success: float
    tokens: int
    loss: float


def weights_of(path):
    """Parameters by name, float32. A linear layer's weight is [in, out]."""
    return {name: value.astype(numpy.float32) for name, value in load_file(path).items()}


def questions(settings, random):
    """One question a group: hops [G], entity asked [G], answer [G], and documents [G, 10] as the token after `=` or `>`.

    A document that redirects holds an entity token, one with a value a digit token.
    """
    groups = settings.groups
    hops = random.choice(3, size=groups, p=HOP_SHARES)
    answer = random.integers(10, size=groups)
    chain = numpy.argsort(random.random((groups, ENTITIES)), axis=1)[:, :2]
    own = numpy.arange(ENTITIES)
    redirect = ENTITY + (own + random.integers(1, ENTITIES, size=(groups, ENTITIES))) % ENTITIES
    documents = numpy.where(random.random((groups, ENTITIES)) < 0.5, redirect, DIGIT + random.integers(10, size=(groups, ENTITIES)))
    every, two = numpy.arange(groups), hops == 2
    documents[every, chain[:, 0]] = numpy.where(two, ENTITY + chain[:, 1], DIGIT + answer)
    documents[every[two], chain[two, 1]] = DIGIT + answer[two]
    note = numpy.where(hops == 0, DIGIT + answer, NONE)
    column = lambda token: numpy.full(groups, token)
    prompt = [column(QUESTION), ENTITY + chain[:, 0], column(QUESTION_MARK), column(NOTE), note]
    return numpy.stack(prompt, axis=1), DIGIT + answer, documents


def run(name, versions, trainer):
    """The command line of a contender. `trainer(settings, weights)` gives a function that makes one training step."""
    options = argparse.ArgumentParser(description=f"GRPO on the search task with {name}")
    options.add_argument("--weights", type=pathlib.Path, default=WARM_START, help="policy to start from (safetensors)")
    options.add_argument("--settings", type=json.loads, default={}, help="JSON object of settings; others keep their defaults")
    options.add_argument("--steps", type=int, default=30)
    options.add_argument("--warm-up", type=int, default=3)
    options.add_argument("--serve", action="store_true", help="take numbers of steps on standard input, one a line")
    chosen = options.parse_args()
    known = {field.name for field in dataclasses.fields(Settings)}
    settings = Settings(**{key: value for key, value in chosen.settings.items() if key in known})
    step = trainer(settings, weights_of(chosen.weights))
    if chosen.serve:
        print(json.dumps({"name": name, "versions": versions}), flush=True)
        for line in sys.stdin:
            print(json.dumps(timed(step, int(line))), flush=True)
        return
    timed(step, chosen.warm_up)
    result = timed(step, chosen.steps)
    low, middle, high = statistics.quantiles(result["seconds"], n=4, method="inclusive")
    print(f"{name} ({versions}): {middle:.3f} s a step (quartiles {low:.3f} to {high:.3f}) over {chosen.steps} steps,"
          f" {result['tokens']:.0f} tokens a step, return {result['mean_return']:.3f}, success {result['success']:.3f},"
          f" {result['mebibytes']:.0f} MiB resident")


def timed(step, count):
    """`count` training steps: seconds of each, processor seconds of one, means of what they tell, resident memory."""
    seconds, told, begun = [], [], time.process_time()
    for _ in range(count):
        start = time.perf_counter()
        told.append(step())
        seconds.append(time.perf_counter() - start)
    mean = lambda field: float(numpy.mean([getattr(one, field) for one in told])) if told else 0.0
    processor = (time.process_time() - begun) / max(count, 1)
    means = {field.name: mean(field.name) for field in dataclasses.fields(Step)}
    return {"seconds": seconds, "processor": processor, "mebibytes": resident_mebibytes(), **means}


def resident_mebibytes():
    """Resident memory of this process; 0 where the system does not tell in this way."""
    try:
        lines = pathlib.Path("/proc/self/status").read_text().splitlines()
    except OSError:
        return 0.0
    return sum(float(line.split()[1]) for line in lines if line.startswith("VmRSS:")) / 1024
