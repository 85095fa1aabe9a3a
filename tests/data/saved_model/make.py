"""Makes the saved models of this folder: a module of its own functions, and a Keras model, as TensorFlow writes them, each with an input
and the outputs it computes. `python make.py FOLDER` (needs: pip install tensorflow-cpu)."""

import pathlib
import sys

import keras
import numpy as np
import tensorflow as tf

FOLDER = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ".")
keras.utils.set_random_seed(7)
random = np.random.default_rng(3)
variable = lambda *shape, name: tf.Variable(random.standard_normal(shape).astype("float32"), name=name)


class Module(tf.Module):
    def __init__(self):
        self.kernel = variable(3, 3, 3, 4, name="kernel")
        self.bias = variable(4, name="bias")
        self.layers = [variable(4, 5, name="same"), variable(5, 2, name="same")]
        self.unused = variable(7, name="unused")
        self.factor = tf.Variable(2.0, name="factor")

    @tf.function(input_signature=[tf.TensorSpec([1, 8, 8, 3], tf.float32, name="image")])
    def __call__(self, image):
        y = tf.nn.relu(tf.nn.conv2d(image, self.kernel, 2, "SAME") + self.bias)
        y = tf.reduce_mean(y, [1, 2])
        return {"scores": tf.nn.softmax(tf.matmul(tf.matmul(y, self.layers[0]), self.layers[1]) * self.factor), "features": y}


def network():
    i = keras.Input((8, 8, 3), batch_size=1, name="picture")
    x = keras.layers.Conv2D(4, 3, activation="relu")(i)
    x = keras.layers.BatchNormalization()(x)
    x = keras.layers.SeparableConv2D(6, 3, padding="same")(x)
    return keras.Model(i, keras.layers.Dense(3)(keras.layers.GlobalAveragePooling2D()(x)))


def objects():
    """What Keras 3 stores restores other variables than the model reads; several have one name."""
    i = keras.Input((8, 8, 3), name="picture")
    x = keras.layers.BatchNormalization(name="same")(keras.layers.Conv2D(4, 3, strides=2, activation="relu")(i))
    j = keras.Input((3, 3, 4))
    inner = keras.Model(j, keras.layers.Conv2D(4, 1, activation="tanh", name="same")(j), name="inner")
    x = keras.layers.Flatten()(inner(inner(x)))
    model = keras.Model(i, [keras.layers.Dense(3)(x), keras.layers.GRU(4)(keras.layers.Reshape((9, 4))(x))])
    normalization = model.get_layer("same")
    normalization.set_weights([random.uniform(0.5, 1.5, w.shape).astype("float32") for w in normalization.get_weights()])
    return model


def without_variables():
    i = keras.Input((8, 8, 3), name="picture")
    return keras.Model(i, keras.layers.Cropping2D(1)(keras.layers.MaxPooling2D()(keras.activations.relu(i))))


def store(name):
    image = np.random.default_rng(5).standard_normal((1, 8, 8, 3)).astype("float32")
    call = tf.saved_model.load(str(FOLDER / name)).signatures["serving_default"]
    outputs = call(tf.constant(image))
    arrays = {f"output_{i}": outputs[key].numpy() for i, key in enumerate(sorted(outputs))}
    np.savez(FOLDER / f"{name}.npz", input_0=image, **arrays)
    (FOLDER / name / "fingerprint.pb").unlink(missing_ok=True)


tf.saved_model.save(Module(), str(FOLDER / "module"))
network().export(str(FOLDER / "network"))
without_variables().export(str(FOLDER / "without_variables"))
tf.saved_model.save(objects(), str(FOLDER / "objects"))
for name in ("module", "network", "without_variables", "objects"):
    store(name)
