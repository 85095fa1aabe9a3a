"""Makes the models of this folder: small networks that use every layer we read, as .h5 and .keras, an input and the output that Keras
computes. Weights are seeded. `python make.py FOLDER` uses Keras 3, `python make.py FOLDER old` Keras 2 (package tf_keras), whose files
begin with old_."""

import pathlib
import sys

import numpy as np

OLD = sys.argv[2:] == ["old"]
if OLD:
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


def spread_statistics(model):
    """Moving statistics and factors of their own: those of a new layer change nothing."""
    random = np.random.default_rng(3)
    for layer in model._flatten_layers():
        if isinstance(layer, (layers.BatchNormalization, layers.LayerNormalization, layers.PReLU)):
            layer.set_weights([random.uniform(0.5, 1.5, w.shape).astype("float32") for w in layer.get_weights()])


for make in (convolutions, classifier, branches, sequence, nested):
    model, name = make(), ("old_" if OLD else "") + make.__name__
    spread_statistics(model)
    random = np.random.default_rng(5)
    inputs = []
    for tensor in model.inputs:
        shape = (1, *tensor.shape[1:])
        whole = tensor.dtype == "int32"
        inputs.append(random.integers(0, 20, shape, "int32") if whole else random.normal(0, 1, shape).astype("float32"))
    outputs = model(inputs if len(inputs) > 1 else inputs[0])
    outputs = outputs if isinstance(outputs, (list, tuple)) else [outputs]
    model.save(FOLDER / f"{name}.h5")
    model.save(FOLDER / f"{name}.keras")
    arrays = {f"input_{i}": v for i, v in enumerate(inputs)}
    arrays.update({f"output_{i}": np.asarray(v) for i, v in enumerate(outputs)})
    np.savez(FOLDER / f"{name}.npz", **arrays)
