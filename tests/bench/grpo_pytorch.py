"""GRPO on the search task in PyTorch on the CPU: a decoding loop with a key/value cache, environments in Python.

All rows stand at the same position, so that one cache slot a position serves them all; finished rows leave the batch.
See grpo_task.py for the command line, and requirements.txt for the versions.
"""

import numpy
import torch
import torch.nn.functional as F

import grpo_task as task
from grpo_task import ANSWER, ENTITY, EOT, EQUALS, ERR, OBS, OBS_END, PROMPT, REDIRECT, SEARCH


class Policy(torch.nn.Module):
    """The decoder of src/policy/transformer.rs: pre-norm, learned positions, ReLU, no biases in attention and head."""

    def __init__(self, weights, heads):
        super().__init__()
        self.heads = heads
        self.layers = 1 + max(int(name.split(".")[1]) for name in weights if name.startswith("blocks."))
        for name, value in weights.items():
            self.register_parameter(name.replace(".", "_"), torch.nn.Parameter(torch.from_numpy(value)))

    def norm(self, name, hidden):
        return F.layer_norm(hidden, hidden.shape[-1:], getattr(self, f"{name}_gamma"), getattr(self, f"{name}_beta"), 1e-5)

    def forward(self, tokens, first=0, cache=None):
        """Logits [B, T, V] of tokens [B, T] at positions from `first` on; with a cache (a list of [2, B, H, C, d / H], one a
        layer) the tokens before them are looked up in it, and theirs are added."""
        batch, length = tokens.shape
        hidden = self.tokens_weight[tokens] + self.positions_weight[first : first + length]
        for layer in range(self.layers):
            of = lambda name: getattr(self, f"blocks_{layer}_{name}")
            qkv = self.norm(f"blocks_{layer}_attention_norm", hidden) @ of("qkv_weight")
            query, key, value = qkv.view(batch, length, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
            if cache is not None:
                store = cache[layer]
                store[0, :, :, first : first + length], store[1, :, :, first : first + length] = key, value
                key, value = store[:, :, :, : first + length]
            attended = F.scaled_dot_product_attention(query, key, value, is_causal=length > 1)
            hidden = hidden + attended.transpose(1, 2).reshape(batch, length, -1) @ of("out_weight")
            inner = F.relu(self.norm(f"blocks_{layer}_hidden_norm", hidden) @ of("up_weight") + of("up_bias"))
            hidden = hidden + inner @ of("down_weight") + of("down_bias")
        return self.norm("norm", hidden) @ self.head_weight


class Episode:
    """One trajectory and its environment."""

    def __init__(self, prompt, answer, documents):
        self.tokens, self.answer, self.documents = list(prompt), answer, documents
        self.sampled, self.log_probs = [False] * PROMPT, [0.0] * PROMPT
        self.start, self.turns, self.done, self.total, self.right = PROMPT, 0, False, 0.0, False

    def take(self, token, log_prob, settings):
        """Adds a sampled token; at the end of a turn lets the tool answer."""
        self.tokens.append(token)
        self.sampled.append(True)
        self.log_probs.append(log_prob)
        full = len(self.tokens) - self.start == settings.turn_tokens or len(self.tokens) == settings.context_length
        if token == EOT or full:
            self.end_turn(self.tokens[self.start :], settings)

    def end_turn(self, action, settings):
        observation = [OBS, ERR, OBS_END]
        if action[0] == ANSWER and action[-1] == EOT and len(action) > 1:
            self.done, self.right = True, len(action) == 3 and action[1] == self.answer
            self.total = settings.gamma**self.turns if self.right else 0.0
        elif len(action) == 3 and action[0] == SEARCH and action[2] == EOT and ENTITY <= action[1] < ENTITY + task.ENTITIES:
            found = int(self.documents[action[1] - ENTITY])
            observation = [OBS, action[1], REDIRECT if found >= ENTITY else EQUALS, found, OBS_END]
        self.turns += 1
        fits = len(self.tokens) + len(observation) < settings.context_length
        self.done = self.done or self.turns >= settings.turn_limit or not fits
        if not self.done:
            self.tokens += observation
            self.sampled += [False] * len(observation)
            self.log_probs += [0.0] * len(observation)
            self.start = len(self.tokens)


@torch.inference_mode()
def roll_out(policy, settings, random):
    """All episodes of a training step, to their end, in the order of groups."""
    prompts, answers, documents = task.questions(settings, random)
    size = settings.num_generations
    episodes = [Episode(prompts[g].tolist(), int(answers[g]), documents[g]) for g in range(settings.groups) for _ in range(size)]
    shape = (2, settings.groups, settings.heads, settings.context_length, policy.tokens_weight.shape[1] // settings.heads)
    cache = [torch.zeros(shape) for _ in range(policy.layers)]
    # Members of a group share the work on their prompt.
    logits = policy(torch.from_numpy(prompts), 0, cache)[:, -1].repeat_interleave(size, 0)
    cache = [store.repeat_interleave(size, 1) for store in cache]
    active = list(range(settings.rows))
    for position in range(PROMPT, settings.context_length):
        log_probs = F.log_softmax(logits, -1)
        drawn = torch.multinomial(log_probs.exp(), 1)
        taken = log_probs.gather(1, drawn).squeeze(1).tolist()
        for row, token, log_prob in zip(active, drawn.squeeze(1).tolist(), taken):
            if len(episodes[row].tokens) == position:
                episodes[row].take(token, log_prob, settings)
        kept = [index for index, row in enumerate(active) if not episodes[row].done]
        if not kept:
            break
        if len(kept) < len(active):
            active = [active[index] for index in kept]
            cache = [store[:, kept] for store in cache]
        if position + 1 < settings.context_length:
            logits = policy(torch.tensor([[episodes[row].tokens[position]] for row in active]), position, cache)[:, -1]
    return episodes


def advantages_of(episodes, settings):
    """(R - mean) / (std + 1e-4) within each group, with the sample deviation."""
    returns = torch.tensor([episode.total for episode in episodes]).view(settings.groups, -1)
    return ((returns - returns.mean(1, keepdim=True)) / (returns.std(1, keepdim=True) + 1e-4)).flatten().tolist()


def micro_loss(policy, episodes, advantages, trained, settings):
    """The share of some episodes in the loss of the whole batch, which trains `trained` tokens."""
    length = max(len(episode.tokens) for episode in episodes)
    padded = lambda field, fill: torch.tensor([getattr(e, field) + [fill] * (length - len(e.tokens)) for e in episodes])
    tokens, mask, old = padded("tokens", 0), padded("sampled", False)[:, 1:], padded("log_probs", 0.0)[:, 1:]
    all_log_probs = F.log_softmax(policy(tokens[:, :-1]), -1)
    taken = all_log_probs.gather(2, tokens[:, 1:, None]).squeeze(2)
    ratio = torch.where(mask, taken - old, 0.0).clamp(-20, 20).exp()
    weight = torch.tensor(advantages)[:, None]
    clipped = ratio.clamp(1 - settings.epsilon, 1 + settings.epsilon_high)
    loss = -torch.minimum(ratio * weight, clipped * weight)
    entropy = -(all_log_probs.exp() * all_log_probs).sum(-1)
    return torch.where(mask, loss - settings.entropy_coefficient * entropy, 0.0).sum() / trained


def trainer(settings, weights):
    policy = Policy(weights, settings.heads)
    betas = (settings.adam_beta1, settings.adam_beta2)
    adam = torch.optim.Adam(policy.parameters(), lr=settings.learning_rate, betas=betas, eps=1e-8, foreach=True)
    random = numpy.random.default_rng(settings.seed)
    torch.manual_seed(settings.seed)

    def step():
        episodes = roll_out(policy, settings, random)
        advantages = advantages_of(episodes, settings)
        trained = sum(sum(episode.sampled) for episode in episodes)
        order = sorted(range(len(episodes)), key=lambda row: len(episodes[row].tokens))
        size = -(-len(order) // settings.micro_batches)
        adam.zero_grad()
        total = 0.0
        for start in range(0, len(order), size):
            rows = order[start : start + size]
            loss = micro_loss(policy, [episodes[row] for row in rows], [advantages[row] for row in rows], trained, settings)
            loss.backward()
            total += loss.item()
        torch.nn.utils.clip_grad_norm_(policy.parameters(), settings.max_grad_norm)
        adam.step()
        mean = lambda values: sum(values) / len(episodes)
        return task.Step(mean(e.total for e in episodes), mean(e.right for e in episodes), sum(len(e.tokens) for e in episodes), total)

    return step


if __name__ == "__main__":
    task.run("PyTorch", f"torch {torch.__version__}, {torch.get_num_threads()} threads", trainer)
