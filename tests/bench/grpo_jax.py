"""GRPO on the search task in JAX on the CPU: rollout and update are one compiled function, environments are arrays.

Decoding is a scan over positions with a key/value cache. Two things that a compiler of fixed shapes does not do by itself are
written out, because they make it faster: between stretches of positions rows that have finished are left out (in blocks of
`BLOCK` rows), and the update runs on micro-batches of similar length, each trimmed to the next of a few widths.
See grpo_task.py for the command line, and requirements.txt for the versions.
"""

import functools

import jax
import jax.numpy as jnp
import numpy
from jax import lax

import grpo_task as task
from grpo_task import ANSWER, ENTITY, EOT, EQUALS, ERR, OBS, OBS_END, OBSERVATION, PROMPT, REDIRECT, SEARCH

BLOCK = 64
STRETCHES = 4
WIDTHS = 5


def norm(weights, name, hidden):
    centred = hidden - hidden.mean(-1, keepdims=True)
    scaled = centred * lax.rsqrt((centred**2).mean(-1, keepdims=True) + 1e-5)
    return scaled * weights[f"{name}.gamma"] + weights[f"{name}.beta"]


def layers_of(weights):
    return 1 + max(int(name.split(".")[1]) for name in weights if name.startswith("blocks."))


def project(weights, layer, heads, hidden):
    """Queries, keys and values [rows, H, d / H] of hidden [rows, d]. Two axes: XLA's CPU compiler fuses three half as well."""
    qkv = norm(weights, f"blocks.{layer}.attention_norm", hidden) @ weights[f"blocks.{layer}.qkv.weight"]
    qkv = qkv.reshape(hidden.shape[0], 3, heads, -1)
    return qkv[:, 0], qkv[:, 1], qkv[:, 2]


def finish(weights, layer, hidden, attended):
    of = lambda name: weights[f"blocks.{layer}.{name}"]
    hidden = hidden + attended.reshape(hidden.shape) @ of("out.weight")
    inner = jax.nn.relu(norm(weights, f"blocks.{layer}.hidden_norm", hidden) @ of("up.weight") + of("up.bias"))
    return hidden + inner @ of("down.weight") + of("down.bias")


def forward(weights, heads, tokens):
    """Logits [B, T, V] of tokens [B, T], and the keys and values of every layer, [B, T, H, d / H]."""
    batch, length = tokens.shape
    hidden = (weights["tokens.weight"][tokens] + weights["positions.weight"][:length]).reshape(batch * length, -1)
    hidden_from = jnp.where(jnp.tril(jnp.ones((length, length), bool)), 0.0, -1e9)
    # Plain batches of matrix products [B * H, T, d / H]: einsum over four axes is slower.
    apart = lambda part: part.swapaxes(1, 2).reshape(batch * heads, length, -1)
    kept = []
    for layer in range(layers_of(weights)):
        query, key, value = (part.reshape(batch, length, heads, -1) for part in project(weights, layer, heads, hidden))
        kept.append((key, value))
        scores = apart(query) @ apart(key).swapaxes(1, 2) * query.shape[-1] ** -0.5 + hidden_from
        attended = (jax.nn.softmax(scores) @ apart(value)).reshape(batch, heads, length, -1).swapaxes(1, 2)
        hidden = finish(weights, layer, hidden, attended)
    return (norm(weights, "norm", hidden) @ weights["head.weight"]).reshape(batch, length, -1), kept


def decode(weights, heads, token, position, cache):
    """Logits [B, V] after token [B] at `position`; cache holds keys and values [B, C, H, d / H] of every layer."""
    hidden = weights["tokens.weight"][token] + weights["positions.weight"][position]
    hidden_from = jnp.where(jnp.arange(cache[0][0].shape[1]) <= position, 0.0, -1e9)
    kept = []
    for layer, (keys, values) in enumerate(cache):
        query, key, value = (part[:, None] for part in project(weights, layer, heads, hidden))
        keys = lax.dynamic_update_slice_in_dim(keys, key, position, 1)
        values = lax.dynamic_update_slice_in_dim(values, value, position, 1)
        kept.append((keys, values))
        scores = (query * keys).sum(-1) * query.shape[-1] ** -0.5 + hidden_from[:, None]  # [B, C, H]
        attended = (jax.nn.softmax(scores, axis=1)[..., None] * values).sum(1)
        hidden = finish(weights, layer, hidden, attended)
    return norm(weights, "norm", hidden) @ weights["head.weight"], kept


def tool(rows, action, length):
    """What the tool makes of actions [B, n] of given lengths: observations [B, 5] with their lengths, answered, right."""
    last = jnp.take_along_axis(action, length[:, None] - 1, 1)[:, 0]
    closed = last == EOT
    answered = (action[:, 0] == ANSWER) & closed & (length > 1)
    right = answered & (length == 3) & (action[:, 1] == rows["answer"])
    entity = action[:, 1] - ENTITY
    called = (length == 3) & (action[:, 0] == SEARCH) & closed & (entity >= 0) & (entity < task.ENTITIES)
    found = jnp.take_along_axis(rows["documents"], jnp.clip(entity, 0, task.ENTITIES - 1)[:, None], 1)[:, 0]
    column = lambda token: jnp.full_like(found, token)
    sign = jnp.where(found >= ENTITY, REDIRECT, EQUALS)
    document = jnp.stack([column(OBS), action[:, 1], sign, found, column(OBS_END)], 1)
    error = jnp.stack([column(OBS), column(ERR), column(OBS_END), column(0), column(0)], 1)
    return jnp.where(called[:, None], document, error), jnp.where(called, 5, 3), answered, right


def next_token(settings, rows, logits, uniform, position):
    """Token number `position` of every row: what the tool still has to say, or else a draw; the tool answers where a turn ends."""
    log_probs = jax.nn.log_softmax(logits)
    cumulative = jnp.cumsum(jnp.exp(log_probs), 1)
    drawn = jnp.minimum((cumulative <= uniform[:, None] * cumulative[:, -1:]).sum(1), logits.shape[1] - 1)
    told = rows["told"] < rows["observed"]
    forced = jnp.take_along_axis(rows["observation"], jnp.minimum(rows["told"], OBSERVATION - 1)[:, None], 1)[:, 0]
    sampled = rows["active"] & ~told
    token = jnp.where(told, forced, drawn)
    every = jnp.arange(settings.turn_tokens)
    action = jnp.where(sampled[:, None] & (every == rows["acted"][:, None]), token[:, None], rows["action"])
    acted = rows["acted"] + sampled
    ends = sampled & ((token == EOT) | (acted == settings.turn_tokens) | (position + 1 == settings.context_length))
    observation, observed, answered, right = tool(rows, action, acted)
    turns = rows["turns"] + ends
    stops = answered | (turns >= settings.turn_limit) | (position + 1 + observed >= settings.context_length)
    write = lambda name, value: rows[name].at[:, position].set(value, mode="drop")
    return token, rows | {
        "tokens": write("tokens", jnp.where(rows["active"], token, 0)),
        "sampled": write("sampled", sampled),
        "log_probs": write("log_probs", jnp.where(sampled, jnp.take_along_axis(log_probs, drawn[:, None], 1)[:, 0], 0.0)),
        "length": rows["length"] + rows["active"],
        "active": rows["active"] & ~(ends & stops),
        "total": jnp.where(ends & right, settings.gamma ** rows["turns"].astype(jnp.float32), rows["total"]),
        "action": action,
        "acted": jnp.where(ends, 0, acted),
        "turns": turns,
        "observation": jnp.where(ends[:, None], observation, rows["observation"]),
        "observed": jnp.where(ends, observed, rows["observed"]),
        "told": jnp.where(ends, 0, rows["told"] + told),
    }


def stretch(settings, weights, first, last, uniforms, state):
    """Positions `first` to `last` (exclusive) of the rows in `state`: (rows, logits, cache)."""

    def position(state, at):
        place, uniform = at
        rows, logits, cache = state
        token, rows = next_token(settings, rows, logits, uniform, place)
        logits, cache = decode(weights, settings.heads, token, place, cache)
        return (rows, logits, cache), None

    rows, logits, cache = state
    full = cache
    cache = jax.tree.map(lambda store: store[:, :last], cache)  # later slots are empty
    uniforms = uniforms[first - PROMPT : last - PROMPT, : logits.shape[0]]
    (rows, logits, cache), _ = lax.scan(position, (rows, logits, cache), (jnp.arange(first, last), uniforms))
    return rows, logits, jax.tree.map(lambda all, new: all.at[:, :last].set(new), full, cache)


def roll_out(settings, weights, key, prompts, answers, documents):
    """All episodes of a training step to their end, in the order of groups: arrays by name, [B, C] and [B]."""
    count, size, length = settings.rows, settings.num_generations, settings.context_length
    logits, kept = forward(weights, settings.heads, prompts)  # members of a group share the work on their prompt
    spread = lambda array: jnp.repeat(array, size, 0)
    room = lambda array: spread(jnp.pad(array, ((0, 0), (0, length - PROMPT), (0, 0), (0, 0))))
    zeros = lambda *shape, kind=jnp.int32: jnp.zeros((count, *shape), kind)
    rows = {
        "place": jnp.arange(count), "answer": spread(answers), "documents": spread(documents),
        "tokens": zeros(length).at[:, :PROMPT].set(spread(prompts)), "sampled": zeros(length, kind=bool),
        "log_probs": zeros(length, kind=jnp.float32), "length": zeros() + PROMPT, "active": ~zeros(kind=bool),
        "total": zeros(kind=jnp.float32), "action": zeros(settings.turn_tokens), "acted": zeros(), "turns": zeros(),
        "observation": zeros(OBSERVATION), "observed": zeros(), "told": zeros(),
    }
    state = rows, spread(logits[:, -1]), [(room(keys), room(values)) for keys, values in kept]
    uniforms = jax.random.uniform(key, (length - PROMPT, count))
    bounds = numpy.linspace(PROMPT, length, STRETCHES + 1).astype(int)
    blocks = -(-count // BLOCK)
    for first, last in zip(bounds[:-1], bounds[1:]):
        if first > PROMPT and blocks > 1:
            order = jnp.argsort(~state[0]["active"], stable=True)
            state = jax.tree.map(lambda array: array[order], state)

        def part(number, state, first=int(first), last=int(last)):
            head = jax.tree.map(lambda array: array[: number * BLOCK], state)
            head = stretch(settings, weights, first, last, uniforms, head) if number else head
            return jax.tree.map(lambda new, old: jnp.concatenate([new, old[number * BLOCK :]]), head, state)

        active = -(-state[0]["active"].sum() // BLOCK)
        state = lax.switch(active, [functools.partial(part, number) for number in range(blocks + 1)], state)
    rows = state[0]
    return jax.tree.map(lambda array: array[jnp.argsort(rows["place"])], rows)


def micro_loss(settings, weights, batch, width):
    """The share of some episodes, trimmed to `width` inputs, in the loss of the whole batch."""
    tokens, old = batch["tokens"][:, : width + 1], batch["log_probs"][:, 1 : width + 1]
    mask = batch["sampled"][:, 1 : width + 1]
    log_probs = jax.nn.log_softmax(forward(weights, settings.heads, tokens[:, :-1])[0])
    taken = jnp.take_along_axis(log_probs, tokens[:, 1:, None], 2)[..., 0]
    ratio = jnp.exp(jnp.clip(jnp.where(mask, taken - old, 0.0), -20, 20))
    weight = batch["advantage"][:, None]
    loss = -jnp.minimum(ratio * weight, jnp.clip(ratio, 1 - settings.epsilon, 1 + settings.epsilon_high) * weight)
    entropy = -(jnp.exp(log_probs) * log_probs).sum(-1)
    return jnp.where(mask, loss - settings.entropy_coefficient * entropy, 0.0).sum()


def gradient_of(settings, weights, rows):
    """Loss and gradient of the token mean over all episodes, from micro-batches of similar length."""
    totals = rows["total"].reshape(settings.groups, -1)
    advantages = (totals - totals.mean(1, keepdims=True)) / (totals.std(1, keepdims=True, ddof=1) + 1e-4)
    batch = {name: rows[name] for name in ("tokens", "sampled", "log_probs", "length")} | {"advantage": advantages.reshape(-1)}
    order = jnp.argsort(rows["length"])
    parts = settings.micro_batches if settings.rows % settings.micro_batches == 0 else 1
    parts = jax.tree.map(lambda array: array[order].reshape(parts, -1, *array.shape[1:]), batch)
    longest = settings.context_length - 1
    step = -(-longest // WIDTHS)
    widths = [min(step * (number + 1), longest) for number in range(WIDTHS)]
    at_width = lambda width: lambda part: jax.value_and_grad(lambda w: micro_loss(settings, w, part, width))(weights)

    def add(sums, part):
        index = jnp.searchsorted(jnp.array(widths), part["length"].max() - 1)
        return jax.tree.map(jnp.add, sums, lax.switch(index, [at_width(width) for width in widths], part)), None

    sums, _ = lax.scan(add, (0.0, jax.tree.map(jnp.zeros_like, weights)), parts)
    return jax.tree.map(lambda value: value / rows["sampled"].sum(), sums)


def adam(settings, weights, moments, time, gradient):
    """Clipping by the norm of the whole gradient, then one step of Adam."""
    norm = jnp.sqrt(sum((value**2).sum() for value in jax.tree.leaves(gradient)))
    gradient = jax.tree.map(lambda value: value * settings.max_grad_norm / jnp.maximum(norm, settings.max_grad_norm), gradient)
    beta1, beta2 = settings.adam_beta1, settings.adam_beta2
    first = jax.tree.map(lambda old, new: beta1 * old + (1 - beta1) * new, moments[0], gradient)
    second = jax.tree.map(lambda old, new: beta2 * old + (1 - beta2) * new**2, moments[1], gradient)
    rate, root = settings.learning_rate / (1 - beta1**time), 1 / (1 - beta2**time)
    move = lambda value, one, two: value - rate * one / (jnp.sqrt(two * root) + 1e-8)
    return jax.tree.map(move, weights, first, second), (first, second)


@functools.partial(jax.jit, static_argnums=0, donate_argnums=(1, 2))
def training_step(settings, weights, moments, time, key, prompts, answers, documents):
    rows = roll_out(settings, weights, key, prompts, answers, documents)
    loss, gradient = gradient_of(settings, weights, rows)
    weights, moments = adam(settings, weights, moments, time, gradient)
    told = jnp.stack([rows["total"].mean(), (rows["total"] > 0).mean(), rows["length"].sum().astype(jnp.float32), loss])
    return weights, moments, told


def trainer(settings, weights):
    random = numpy.random.default_rng(settings.seed)
    keys = iter(range(2**31))
    state = [jax.tree.map(jnp.asarray, weights)]
    state.append((jax.tree.map(jnp.zeros_like, state[0]), jax.tree.map(jnp.zeros_like, state[0])))

    def step():
        number = next(keys)
        key = jax.random.fold_in(jax.random.key(settings.seed), number)
        prompts, answers, documents = (numpy.asarray(part, numpy.int32) for part in task.questions(settings, random))
        state[0], state[1], told = training_step(settings, *state, number + 1.0, key, prompts, answers, documents)
        mean_return, success, tokens, loss = numpy.asarray(told).tolist()
        return task.Step(mean_return, success, tokens, loss)

    return step


if __name__ == "__main__":
    task.run("JAX", f"jax {jax.__version__}", trainer)
