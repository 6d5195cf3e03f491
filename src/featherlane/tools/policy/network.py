"""Evaluates a multilayer perceptron in lanes: each lane computes the network of its world.

Weights are data, so other weights need no compilation.  They lie in one array in the precision of the tile, in the
order of `MLP.numbers`: a layer's outputs in groups of BLOCK, each group as its biases and then its weights input by
input.  A group's sums stay in registers.  Each sum starts with the bias and adds the inputs in their order, one fused
multiply-add each, so a world's output does not depend on the width of the tile.

The record p is POLICY: sizes and addresses that the call sets, the layers, and values of the lanes' worlds.
"""

from featherlane.engine.prelude import *
from featherlane.engine.lanes import Field, Layout

BLOCK = 8  # outputs that are summed together
IDENTITY, TANH, ELU, RELU = range(4)

POLICY = Layout(
    "Policy",
    (
        Field("nlayer", "size", doc="number of layers"),
        Field("ninput", "size", doc="number of observations"),
        Field("noutput", "size", doc="number of actions"),
        Field("nhidden", "size", doc="rows of one half of `hidden`"),
        Field("numbers", "size", doc="address of all numbers of the network, in the precision of the tile"),
        Field("tail", "size", doc="index of the first number behind the weights"),
        Field("nrow", "size", doc="observations that `evaluate_policy` reads"),
        Field("rows_in", "size", doc="address of these observations"),
        Field("rows_out", "size", doc="address of their actions"),
        Field("layer_in", "long", ("nlayer",), "1", "inputs of a layer"),
        Field("layer_out", "long", ("nlayer",), "1", "outputs of a layer"),
        Field("layer_activation", "long", ("nlayer",), "1", "activation of a layer"),
        Field("layer_adr", "long", ("nlayer",), "1", "index of a layer's first number"),
        Field("obs", "real", ("ninput",), "1", "observation"),
        Field("hidden", "real", ("nhidden2",), "1", "inputs and outputs of a layer, in turn in both halves"),
        Field("mean", "real", ("noutput",), "1", "output of the network, scaled"),
    ),
)


@kernel
def activate(x, kind):
    """Returns the activation of x by its kind, IDENTITY, TANH, ELU or RELU; NaN stays NaN.

    Error: within 2e-16 (float64) or 1e-7 (float32) of max(1, |x|).
    """
    y = x
    if kind == TANH:
        e = exp(-2.0 * fabs(x))  # tanh |x| = (1 - e) / (1 + e)
        y = copysign((1.0 - e) / (1.0 + e), x)
    elif kind == ELU:
        y = where(x > 0.0, x, exp(where(x > 0.0, 0.0, x)) - 1.0)
    elif kind == RELU:
        y = where(x < 0.0, 0.0, x)
    return y


@kernel
def evaluate_layer(p, w, first, source, target, nin, nout, kind):
    """Writes hidden[target ..] = activation(bias + W hidden[source ..]) of one layer.

    w: numbers of the network; first: index of the layer's first number; nin, nout: inputs and outputs.
    kind: activation.  Outputs are computed in groups of BLOCK; the last group is padded.
    """
    for group in range(0, nout, BLOCK):
        adr = first + group * (nin + 1)  # the group's biases, then BLOCK weights per input
        sums = tuple(0.0 + w[adr + k] for k in range(BLOCK))  # a bias -0.0 counts as 0.0
        for i in range(nin):
            adr += BLOCK
            x = p.hidden[source + i]
            sums = tuple(fma(w[adr + k], x, sums[k]) for k in range(BLOCK))
        for k in unrolled(range(BLOCK)):
            p.hidden[target + group + k] = activate(sums[k], kind)


@kernel
def normalize_observations(p, w, a):
    """Writes hidden[0 ..] = clip((obs - mean) / deviation, -limit, limit).

    w holds, from index a on: ninput means, ninput inverse deviations, the limit.
    """
    n = p.ninput
    limit = w[a + 2 * n]
    for i in range(n):
        x = (p.obs[i] - w[a + i]) * w[a + n + i]
        x = where(x > limit, limit, x)
        p.hidden[i] = where(x < -limit, -limit, x)  # NaN stays NaN


@kernel
def mean_action(p):
    """Writes mean = offset + scale * network(normalized obs).   Scratch: hidden; layers alternate its two halves."""
    numbers = scalars(p, p.numbers)
    normalize_observations(p, numbers, p.tail)
    source = 0
    for k in range(p.nlayer):
        target = p.nhidden - source
        evaluate_layer(p, numbers, p.layer_adr[k], source, target, p.layer_in[k], p.layer_out[k], p.layer_activation[k])
        source = target
    scales = p.tail + 2 * p.ninput + 1  # scales, then offsets
    for k in range(p.noutput):
        p.mean[k] = numbers[scales + p.noutput + k] + numbers[scales + k] * p.hidden[source + k]


@stage(p=POLICY)
def evaluate_policy(p, first, last):
    """Evaluates the network for rows of observations, tile by tile; lanes without a row repeat the last one.

    first, last: the first tile, and the one behind the last.

    Reads:  nrow, rows_in, rows_out, numbers, layer_in, layer_out, layer_activation, layer_adr.
    Writes: obs, hidden, mean; the actions, at their address.
    """
    W, nin, nout = width(p), p.ninput, p.noutput
    rows_in, rows_out = scalars(p, p.rows_in), scalars(p, p.rows_out)
    for tile in range(first, last):
        for lane in range(W):
            row = min(tile * W + lane, p.nrow - 1)
            for i in range(nin):
                write_lane(p.obs, i, lane, rows_in[row * nin + i])
        mean_action(p)
        for lane in range(min(W, p.nrow - tile * W)):
            for k in range(nout):
                rows_out[(tile * W + lane) * nout + k] = read_lane(p.mean, k, lane)
