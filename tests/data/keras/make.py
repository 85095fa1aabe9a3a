"""Makes the models of this folder: small networks that use every layer we read, as .h5 and .keras, an input and the output that Keras
computes. Weights are seeded. `python make.py FOLDER` uses Keras 3, `python make.py FOLDER old` Keras 2 (package tf_keras), whose files
begin with old_. Names of models after that make these alone."""

import pathlib
import sys

import numpy as np

OLD = sys.argv[2:3] == ["old"]
if OLD:
    import tensorflow as tf
    import tf_keras as keras
else:
    import keras
layers = keras.layers
keras.utils.set_random_seed(7)
FOLDER = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ".")


def picture(*shape):
    return keras.Input(shape, name="picture")


def convolutions():
    x = i = picture(12, 12, 3)
    x = layers.Conv2D(8, 3, strides=2, padding="same", use_bias=False)(x)
    x = layers.BatchNormalization()(x)
    x = layers.ReLU(6.0)(x)
    x = layers.DepthwiseConv2D(3, padding="same", activation="swish")(x)
    x = layers.SeparableConv2D(6, 3, depth_multiplier=2, activation="elu")(x)
    x = layers.Conv2D(4, 3, dilation_rate=2, padding="same", groups=2, activation="hard_sigmoid")(x)
    x = layers.Conv2DTranspose(3, 4, strides=2, padding="same", activation="tanh")(x)
    x = layers.Conv2DTranspose(2, 3, strides=2, activation="softplus")(x)
    return keras.Model(i, x)


def classifier():
    return keras.Sequential(
        [
            picture(10, 10, 3),
            layers.Rescaling(1 / 127.5, offset=-1),
            layers.Conv2D(4, 3, activation="relu"),
            layers.MaxPooling2D(),
            layers.Dropout(0.5),
            layers.Flatten(),
            layers.Dense(7, activation="gelu"),
            layers.BatchNormalization(scale=False),
            layers.Dense(5, activation="softmax"),
        ]
    )


def branches():
    i = picture(8, 8, 4)
    a = layers.AveragePooling2D(3, strides=1, padding="same")(i)
    b = layers.ZeroPadding2D(((1, 0), (0, 2)))(i)
    b = layers.Cropping2D(((1, 0), (0, 2)))(b)
    c = layers.LeakyReLU(**{"alpha" if OLD else "negative_slope": 0.1})(i)
    d = layers.PReLU(shared_axes=[1, 2])(i)
    x = layers.Concatenate()([a, b, c, d])
    x = layers.UpSampling2D(2)(x)
    x = layers.UpSampling2D(2, interpolation="bilinear")(x)
    y = layers.Maximum()([a, layers.Minimum()([b, c])])
    y = layers.Multiply()([layers.Average()([y, d]), layers.Subtract()([a, d])])
    y = layers.Resizing(5, 6)(layers.Add()([y, i]))
    return keras.Model(i, [layers.GlobalAveragePooling2D()(x), layers.GlobalMaxPooling2D(keepdims=True)(x), y])


def sequence():
    i = keras.Input((9,), dtype="int32", name="words")
    x = layers.Embedding(20, 6)(i)
    x = layers.Conv1D(8, 3, padding="causal", dilation_rate=2, activation="selu")(x)
    x = layers.Conv1D(6, 2, strides=2, padding="same")(x)
    x = layers.LayerNormalization()(x)
    x = layers.LSTM(5, return_sequences=True)(x)
    x = layers.MaxPooling1D(2)(layers.ZeroPadding1D(1)(x))
    y = layers.LSTM(4, use_bias=False)(x)
    y = layers.RepeatVector(3)(y)
    y = layers.Permute((2, 1))(y)
    y = layers.Reshape((6, -1))(y)
    return keras.Model(i, [layers.Dense(3, activation="mish")(x), layers.Softmax(axis=1)(y), layers.GlobalAveragePooling1D()(x)])


def nested():
    """A model in a model, called twice, and a layer that two calls share."""
    j = keras.Input((4, 4, 3), name="inside")
    block = keras.Model(j, layers.BatchNormalization()(layers.Conv2D(3, 1, activation="relu6")(j)), name="block")
    tail = keras.Sequential([keras.Input((4, 4, 3)), layers.Flatten(), layers.Dense(4)], name="tail")
    i = picture(4, 4, 3)
    other = keras.Input((4, 4, 3), name="other")
    shared = layers.Conv2D(3, 3, padding="same", name="shared")
    x = layers.Add()([block(shared(i)), block(shared(other))])
    return keras.Model([other, i], [layers.Activation("sigmoid")(tail(x)), x])


def recurrent():
    i = keras.Input((6, 5), name="steps")
    x = layers.Bidirectional(layers.LSTM(4, return_sequences=True))(i)
    x = layers.GRU(6, return_sequences=True)(x)
    y = layers.Bidirectional(layers.GRU(3), merge_mode="sum")(x)
    z = layers.SimpleRNN(4, go_backwards=True)(layers.GRU(5, reset_after=False, use_bias=False, return_sequences=True)(x))
    w = layers.Bidirectional(layers.SimpleRNN(2, return_sequences=True), merge_mode="ave")(i)
    return keras.Model(i, [x, y, z, w])


def attention():
    i = keras.Input((6, 8), name="query")
    other = keras.Input((4, 10), name="memory")
    x = layers.Add()([i, layers.MultiHeadAttention(2, 4)(i, i)])
    x = layers.LayerNormalization(epsilon=1e-6)(x)
    y = layers.MultiHeadAttention(3, 5, value_dim=2, use_bias=False)(x, other)
    return keras.Model([i, other], [layers.Dense(4)(x), y])


def frames():
    i = keras.Input((3, 8, 8, 2), name="frames")
    x = layers.TimeDistributed(layers.Conv2D(4, 3, activation="relu"))(i)
    x = layers.TimeDistributed(layers.MaxPooling2D())(x)
    x = layers.TimeDistributed(layers.Flatten())(x)
    return keras.Model(i, layers.GRU(5)(layers.TimeDistributed(layers.Dense(6))(x)))


def normalizations():
    i = picture(6, 6, 8)
    x = layers.GroupNormalization(4)(i)
    y = layers.GroupNormalization(-1, center=False)(i)
    z = layers.UnitNormalization(axis=[1, 3])(layers.ELU(0.5)(i))
    outputs = [x, y, z, layers.UnitNormalization()(x)]
    if not OLD:
        outputs.append(layers.RMSNormalization()(z))
    return keras.Model(i, outputs)


def scaled():
    """Blocks of ConvNeXt, whose class of layers is not one of keras.layers."""
    from keras.src.applications.convnext import LayerScale

    i = picture(6, 6, 4)
    x = layers.Dense(4)(layers.LayerNormalization(epsilon=1e-6)(layers.DepthwiseConv2D(3, padding="same")(i)))
    return keras.Model(i, layers.Add()([i, LayerScale(0.3, 4)(x)]))


def operations():
    """Functions of tensors and numbers between layers."""
    ops = keras.ops
    i = picture(4, 6, 3)
    whole = keras.Input((5,), dtype="int32", name="places")
    x = ops.relu(i * 2.0 - 1.0) / (1.5 + ops.abs(i)) ** 2
    centred = i - ops.mean(i, axis=(1, 2), keepdims=True)
    rows = ops.reshape(ops.transpose(x, (0, 3, 1, 2)), (-1, 3, 24))
    product = ops.matmul(rows, ops.swapaxes(rows, 1, 2))
    parts = centred[:, 1:3, ::2, None, 0] - x[..., -1][:, :2, ::2, None]
    joined = ops.concatenate([rows, ops.stack([rows, rows], axis=1)[:, 1]], axis=-1)
    chosen = ops.where(x > 0.2, ops.sqrt(ops.maximum(x, 0.0)), ops.exp(-i))
    functions = ops.gelu(i) + ops.gelu(i, approximate=False) + ops.silu(i) + ops.softmax(i, axis=1) + ops.log_softmax(i)
    numbers = ops.cast(whole * 2 + 1, "float32") + ops.expand_dims(ops.sum(ops.clip(i, -0.5, 0.5), axis=(1, 2, 3)), 1)
    places = ops.argmax(x, axis=-1) + ops.take(ops.cast(whole, "int32"), 2, axis=1)[:, None, None] // 2
    return keras.Model([i, whole], [centred, product, parts, joined, chosen, functions, numbers, places])


NORMALIZATIONS = (layers.BatchNormalization, layers.LayerNormalization, layers.GroupNormalization, layers.PReLU)
NORMALIZATIONS += () if OLD else (layers.RMSNormalization,)


def volumes():
    i = keras.Input((5, 6, 6, 2), name="volume")
    x = layers.Conv3D(4, (2, 3, 3), strides=(1, 2, 1), padding="same", activation="relu")(i)
    y = layers.MaxPooling3D((1, 1, 2))(x)
    z = layers.AveragePooling3D(2, padding="same")(x)
    outputs = [y, layers.UpSampling3D((2, 1, 2))(z), layers.GlobalAveragePooling3D()(x), layers.GlobalMaxPooling3D()(x)]
    return keras.Model(i, outputs)


def signals():
    i, j = keras.Input((9, 4), name="one"), keras.Input((7, 4), name="other")
    x = layers.DepthwiseConv1D(3, depth_multiplier=2, padding="same", activation="tanh")(i)
    y = layers.SeparableConv1D(5, 3, strides=2, activation="relu")(x)
    z = layers.UpSampling1D(3)(layers.Cropping1D((1, 2))(i))
    a = layers.Attention(use_scale=True)([i, j])
    b = layers.Attention()([i, j, layers.Dense(4)(j)])
    d = layers.Dot(axes=(2, 2))([i, j])
    n = layers.Dot(axes=1, normalize=True)([layers.Flatten()(i), layers.Dense(36)(layers.Flatten()(j))])
    seen = layers.MultiHeadAttention(2, 3)(query=i, key=j, value=layers.Dense(4)(j))
    earlier = layers.MultiHeadAttention(2, 3)(i, i, use_causal_mask=True)
    return keras.Model([i, j], [y, z, a, b, d, n, seen, earlier])


def functions():
    """Functions of TensorFlow between layers of Keras 2."""
    i = picture(4, 6, 3)
    x = tf.nn.relu(i * 2.0 - 1.0) / (1.5 + tf.abs(i))
    centred = i - tf.reduce_mean(i, axis=[1, 2], keepdims=True)
    rows = tf.reshape(tf.transpose(x, [0, 3, 1, 2]), [-1, 3, 24])
    product = tf.matmul(rows, rows, transpose_b=True)
    parts = centred[:, 1:3, ::2, tf.newaxis, 0]
    joined = tf.concat([rows, tf.stack([rows, rows], 1)[:, 1]], axis=-1)
    larger = tf.image.resize(tf.pad(i, [[0, 0], [1, 2], [0, 1], [0, 0]]), [8, 12])
    sums = tf.squeeze(tf.expand_dims(tf.reduce_sum(tf.clip_by_value(i, -0.5, 0.5), axis=[1, 2]), 1), 1)
    activations = tf.nn.softmax(i, axis=1) + tf.exp(-i) ** 2 + tf.maximum(i, 0.3) + tf.nn.leaky_relu(i, alpha=0.1) + tf.nn.gelu(i)
    chosen = tf.cast(i > 0.1, tf.float32) * tf.sqrt(tf.square(i))
    deep = tf.nn.depth_to_space(tf.tile(i, [1, 1, 1, 4]), 2)
    memory = layers.Dense(8)(rows)
    attended = layers.MultiHeadAttention(2, 4)(rows, value=memory)
    outputs = [x, product, parts, joined, larger, sums, activations, chosen, deep, tf.argmax(i, -1), attended]
    return keras.Model(i, outputs)


def states():
    """Recurrent layers that are given states and return theirs, cells, and other activations."""
    i = keras.Input((6, 5), name="steps")
    h, c = keras.Input((4,), name="h"), keras.Input((4,), name="c")
    x, *last = layers.LSTM(4, return_sequences=True, return_state=True)(i, initial_state=[h, c])
    y = layers.GRU(4, recurrent_activation="hard_sigmoid", go_backwards=True)(x, initial_state=h)
    z = layers.SimpleRNN(4, activation="relu", return_sequences=True)(i, initial_state=c)
    both = layers.Bidirectional(layers.LSTM(4, return_state=True))(x, initial_state=[h, c, c, h])
    cells = layers.RNN([layers.LSTMCell(3), layers.GRUCell(4), layers.SimpleRNNCell(2)])(z)
    return keras.Model([i, h, c], [x, *last, y, z, *both, cells])


def pictures_in_time():
    i, j = keras.Input((3, 6, 7, 2), name="pictures"), keras.Input((4, 8, 3), name="lines")
    h, c = keras.Input((6, 7, 3), name="h"), keras.Input((6, 7, 3), name="c")
    x, *last = layers.ConvLSTM2D(3, 3, padding="same", return_sequences=True, return_state=True)(i, initial_state=[h, c])
    y = layers.Bidirectional(layers.ConvLSTM2D(2, 3, strides=2, recurrent_activation="hard_sigmoid"))(x)
    z = layers.ConvLSTM1D(3, 3, go_backwards=True, return_sequences=True, use_bias=False)(j)
    inside = keras.Input((6, 7, 3))
    every = layers.TimeDistributed(keras.Model(inside, layers.Dense(3)(layers.Flatten()(layers.Conv2D(2, 3)(inside)))))(x)
    return keras.Model([i, j, h, c], [x, *last, y, z, every])


def masks():
    """Steps that do not count, at both ends and in the middle."""
    i, j = keras.Input((7,), dtype="int32", name="words"), keras.Input((7, 5), name="steps")
    seen = keras.Input((7, 7), dtype="bool", name="seen")
    x = layers.Dropout(0.1)(layers.Embedding(4, 6, mask_zero=True)(i))
    y = layers.Masking(0.5)(j)
    last = layers.LSTM(3)(layers.LSTM(4, return_sequences=True)(x))
    both = layers.Bidirectional(layers.GRU(3, return_sequences=True))(x)
    backwards = layers.SimpleRNN(3, go_backwards=True, return_sequences=True)(y)
    attended = layers.MultiHeadAttention(2, 3)(x, both, attention_mask=seen)
    outputs = [last, both, backwards, attended, layers.GlobalAveragePooling1D()(x), layers.Attention()([x, both])]
    return keras.Model([i, j, seen], outputs)


def rest():
    """Layers that few models have."""
    i, j, k = picture(7, 8, 4), keras.Input((6, 5), name="line"), keras.Input((4, 5, 4, 2), name="volume")
    a = layers.Conv2DTranspose(3, 3, strides=2, padding="same", output_padding=1)(layers.Cropping2D(1)(i))
    b = layers.Conv1DTranspose(4, 3, strides=2)(layers.EinsumDense("abc,cd->abd", (None, 3), bias_axes="d")(j))
    c = layers.Conv3DTranspose(2, 2)(layers.Cropping3D(((1, 0), (0, 1), (1, 1)))(layers.ZeroPadding3D(1)(k)))
    d = layers.AdditiveAttention()([j, layers.Dense(5)(j)])
    e = layers.CenterCrop(4, 5)(layers.Softmax(axis=[1, 2])(i))
    f = layers.Normalization(axis=1, mean=[0.1 * n for n in range(7)], variance=[1.0 + n for n in range(7)])(i)
    g = layers.LayerNormalization(axis=[1, 3])(layers.BatchNormalization(axis=2)(i))
    h, scores = layers.MultiHeadAttention(2, 3)(j, j, return_attention_scores=True)
    outputs = [a, b, c, d, e, f, g, h, scores, layers.Dot(axes=(1, 2))([layers.Dense(5)(layers.Flatten()(j)), j])]
    outputs.append(layers.Discretization([-1.0, 0.0, 0.5], output_mode="multi_hot")(layers.Flatten()(j)))
    if OLD:
        outputs += [layers.LocallyConnected1D(3, 2)(j), layers.LocallyConnected2D(3, 3, strides=2)(i)]
        outputs.append(layers.ThresholdedReLU(0.4)(j))
    else:
        outputs += [layers.SpectralNormalization(layers.Conv2D(3, 3))(i), layers.AdaptiveAveragePooling2D((3, 5))(i)]
        outputs += [layers.AdaptiveMaxPooling1D(4)(j), layers.GroupQueryAttention(3, 4, 2)(j, j)]
    return keras.Model([i, j, k], outputs)


def arrays():
    """Functions that are composed, and tensors that are stored with their values."""
    ops = keras.ops
    i = keras.Input((5, 6), name="lines")
    table = np.random.default_rng(1).normal(0, 1, (6, 3)).astype("float32")
    outputs = [
        i + ops.arange(6, dtype="float32"),
        ops.dot(i, table),
        ops.tensordot(i, table, axes=[[2], [0]]),
        ops.inner(i, table.T),
    ]
    outputs += [ops.tensordot(i, ops.convert_to_tensor(table), axes=1), ops.where(np.array([True, False] * 3), i, -i)]
    outputs += [
        ops.norm(i, axis=-1),
        ops.norm(i, ord=1, axis=1, keepdims=True),
        ops.normalize(i, axis=1),
        ops.rms_normalization(i),
    ]
    outputs += [ops.median(i, axis=1), ops.quantile(i, 0.3, axis=2, keepdims=True), ops.average(i, axis=1)]
    outputs += [ops.count_nonzero(i > 0, axis=1), ops.diff(i, n=2, axis=1), ops.nan_to_num(i / ops.relu(i), posinf=3.0)]
    outputs += [ops.hstack([i, i]), ops.vstack([i, i]), ops.select([i > 0.5, i < -0.5], [i * 2, i * i], 0.25)]
    heads = ops.reshape(i, (-1, 5, 2, 3))
    outputs += [
        ops.dot_product_attention(heads, heads, heads, is_causal=True),
        ops.max_pool(heads, 2),
        layers.Activation("sparsemax")(i),
    ]
    outputs.append(ops.average_pool(heads, 2, strides=1, padding="same"))
    return keras.Model(i, outputs)


def statistics():
    """Order statistics."""
    ops = keras.ops
    i = keras.Input((5, 6), name="lines")
    shares = np.array([0.1, 0.77], "float32")
    outputs = [
        ops.quantile(i, [0.1, 0.5, 0.77], axis=1),
        ops.quantile(i, shares, axis=(1, 2), keepdims=True),
        ops.quantile(i, 0.4, axis=(0, 2)),
        ops.quantile(i, [0.77], axis=2, method="lower"),
        ops.median(i, axis=(1, 2), keepdims=True),
        ops.percentile(i, [12, 63], axis=2, method="lower", keepdims=True),
        ops.percentile(i, 30, method="midpoint"),
    ]
    some = ops.sqrt(i)  # no number where it is negative
    outputs += [ops.nanmedian(some, axis=1), ops.nanquantile(some, [0.2, 0.6], axis=2, method="higher")]
    outputs.append(ops.nanpercentile(some, 80.0, axis=-1, keepdims=True))
    return keras.Model(i, outputs)


def keyed():
    """Outputs with names, out of a model that is used twice."""
    i = picture(6, 6, 2)
    shared = keras.Sequential([keras.Input((6, 6, 2)), layers.Conv2D(3, 3), layers.GlobalMaxPooling2D()])
    return keras.Model(i, {"second": shared(i * 2.0), "first": shared(i)})


def small_model(name):
    i = keras.Input((4,))
    return keras.Model(i, layers.Dense(4, activation="tanh")(i), name=name)


def calls():
    """Models and layers that are called several times, and whose calls are outputs."""
    i = keras.Input((4,), name="line")
    block, innermost, dense = small_model("block"), small_model("innermost"), layers.Dense(4)
    tail = keras.Sequential([keras.Input((4,)), layers.Dense(4)], name="tail")
    j = keras.Input((4,))
    first = innermost(j)
    deep = keras.Model(j, [innermost(dense(first)), first], name="deep")
    block(j)  # a call outside of the model
    p = block(i)
    q = block(layers.Dense(4)(p))
    s = tail(p)
    deep_s, again = deep(s), layers.Dense(4)
    a = again(i)
    outputs = [q, p, layers.ReLU()(block(q)), s, tail(s), *deep(deep_s[1]), *deep_s, again(a), a]
    return keras.Model(i, outputs)


def last_model():
    """A model in a model in a model, each the last layer."""
    i, j = keras.Input((4,), name="line"), keras.Input((4,))
    return keras.Model(i, keras.Model(j, small_model("innermost")(j), name="middle")(i))


def namesakes():
    """Inner models whose layers have the same names, and layers with several weights inside."""

    def inner(name):
        i = keras.Input((4, 3))
        x = layers.LSTM(3, return_sequences=True, name="steps")(layers.Dense(3, name="dense")(i))
        return keras.Model(i, layers.MultiHeadAttention(1, 2, name="attention")(x, x), name=name)

    i, j = keras.Input((4, 3), name="line"), keras.Input((4, 3))
    return keras.Model(i, inner("b")(keras.Model(j, inner("inside")(j), name="a")(i)))


def trees():
    """Inputs and outputs in lists and maps."""
    i = {name: keras.Input((4,), name=name) for name in ("b", "a")}
    inner = keras.Model(i, [layers.Dense(3)(i["b"]), {"z": layers.Dense(4)(i["a"]), "y": i["a"] - i["b"]}], name="inner")
    line = keras.Input((4,), name="line")
    one, more = inner({"a": line, "b": line * 2.0})
    return keras.Model(line, {"second": [one, more["z"]], "first": inner({"b": more["y"], "a": line})})


def spread_statistics(model):
    """Moving statistics and factors of their own: those of a new layer change nothing."""
    random = np.random.default_rng(3)
    for layer in model._flatten_layers():
        if isinstance(layer, NORMALIZATIONS):
            layer.set_weights([random.uniform(0.5, 1.5, w.shape).astype("float32") for w in layer.get_weights()])


models = [convolutions, classifier, branches, sequence, nested, recurrent, attention, frames, normalizations, volumes, signals]
models += [states, pictures_in_time, masks, rest, calls, last_model, namesakes, trees]
models += [functions] if OLD else [scaled, operations, arrays, keyed, statistics]
wanted = sys.argv[3:] if OLD else sys.argv[2:]  # names of models; none: all
for make in (m for m in models if not wanted or m.__name__ in wanted):
    model, name = make(), ("old_" if OLD else "") + make.__name__
    spread_statistics(model)
    random = np.random.default_rng(5)
    inputs = []
    for tensor in model.inputs:
        shape = (1, *tensor.shape[1:])
        dtype, most = getattr(tensor.dtype, "name", tensor.dtype), 4 if make is masks else 20
        whole = dtype in ("int32", "bool")
        values = (random.integers(0, most, shape) if whole else random.normal(0, 1, shape)).astype(dtype)
        if make is masks and tensor.name == "steps":
            values[:, [0, 2, 6]] = 0.5
        inputs.append(values)
    outputs = model(inputs if len(inputs) > 1 else inputs[0])
    outputs = tf.nest.flatten(outputs) if OLD else keras.tree.flatten(outputs)
    model.save(FOLDER / f"{name}.h5")
    model.save(FOLDER / f"{name}.keras")
    arrays = {f"input_{i}": v for i, v in enumerate(inputs)}
    arrays.update({f"output_{i}": keras.ops.convert_to_numpy(v) if not OLD else np.asarray(v) for i, v in enumerate(outputs)})
    np.savez(FOLDER / f"{name}.npz", **arrays)
