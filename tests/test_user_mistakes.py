"""What users read when they make a mistake: the text names what is wrong and, where it can be known, what was meant."""

import os
import pathlib

import numpy as np
import pytest
from rknn.api import RKNN

ROOT = pathlib.Path(__file__).resolve().parent.parent


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Inputs that are wrong in one way each."""
    folder = tmp_path_factory.mktemp("mistakes")
    (folder / "empty.txt").write_text("")
    (folder / "missing.txt").write_text("nowhere.png\n")
    (folder / "two.txt").write_text("a.npy b.npy\n")
    np.save(folder / "a.npy", np.zeros((1, 3, 64, 64), np.float32))
    np.save(folder / "b.npy", np.zeros((1, 3, 64, 64), np.float32))
    np.save(folder / "small.npy", np.zeros((1, 3, 8, 8), np.float32))
    np.save(folder / "nhwc.npy", np.zeros((1, 64, 64, 3), np.float32))
    np.save(folder / "nan.npy", np.full((1, 3, 64, 64), np.nan, np.float32))
    (folder / "nan.txt").write_text("nan.npy\nnan.npy\n")
    (folder / "text.rknn").write_text("this is no model")
    (folder / "picture.onnx").write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(100))
    (folder / "program.py").write_text("import torch\n")
    (folder / "none.onnx").write_bytes(b"")
    rknn = RKNN()
    rknn.config(target_platform="rk3588")
    assert rknn.load_onnx(str(ROOT / "examples" / "models" / "shapes.onnx")) == 0 and rknn.build(do_quantization=False) == 0
    assert rknn.export_rknn(str(folder / "cut.rknn")) == 0
    os.truncate(folder / "cut.rknn", 5000)
    (folder / "empty").mkdir()
    return folder


# Arguments ({m}: the bundled classifier, {f}: the folder above), and what stderr must hold.
COMMANDS = [
    ("convrt {m}", "did you mean 'convert'?"),
    ("profil {m}", "did you mean 'profile'?"),
    ("convert {m} --optimisation-level 2 -o {f}/o.rknn", "did you mean '--optimization-level'?"),
    ("convert {m} --target-platfrom rk3588 -o {f}/o.rknn", "did you mean '--target-platform'?"),
    ("convert {m} -o {f}/o.rknn -t rk35888", "did you mean 'rk3588'?"),
    ("convert {f}/nowhere.onnx -o {f}/o.rknn -t rk3588", "cannot open '{f}/nowhere.onnx': No such file or directory"),
    ("convert {m} -o {f}/no/o.rknn -t rk3588", "check that the folder exists"),
    (
        "convert {m} -o {f}/o.rknn -t rk3588 --outputs scorse",
        "the 'scorse' in outputs=['scorse'] is invalid! Hint: did you mean 'scores'?",
    ),
    ("convert {m} -o {f}/o.rknn -t rk3588 --inputs imagee --input-size-list 1,3,64,64", "did you mean 'image'?"),
    ("convert {m} -o {f}/o.rknn -t rk3588 --mean 1,2", "The len of mean_values ([1, 2]) for input 0 is wrong, expect 3!"),
    ("convert {m} -o {f}/o.rknn -t rk3588 --mean a,b,c", "--mean needs numbers, found 'a,b,c'"),
    ("convert {m} -o {f}/o.rknn -t rk3588 --framework onyx", "there is no importer 'onyx'"),
    ("convert {m} -o {f}/o.rknn -t rk3588 --framework tflite", "the file is a model of onnx, not of tflite"),
    (
        "convert {m} -o {f}/o.rknn -t rk3588 --batch-size 0",
        "Invalid rknn_batch_size 0, expect a number of samples from 1 to 65536!",
    ),
    ("convert {m} -o {f}/o.rknn -t rk3588 -O 4", "Invalid optimization_level 4, expect in [0, 1, 2, 3]!"),
    ("profile {m} -t rk3588 -O -1", "Invalid optimization_level -1, expect in [0, 1, 2, 3]!"),
    (
        "quantize {m} -o {f}/o.rknn -t rk3588 --dataset {f}/nowhere.txt --auto-hybrid 0",
        "Invalid auto_hybrid_cos_thresh 0, expect a number above 0 and up to 1!",
    ),
    ("convert {m} -o {f}/o.rknn -t rk3588 --auto-hybrid 1.5", "Invalid auto_hybrid_cos_thresh 1.5, expect a number above 0"),
    ("convert {m} -o {f}/o.rknn -t rk3588 --op-target Conv", "--op-target needs NAME=npu or NAME=cpu"),
    ("convert {f}/text.rknn -o {f}/o.rknn -t rk3588", "text.rknn"),
    ("quantize {m} -o {f}/o.rknn -t rk3588", "--dataset (list of calibration samples, one per line"),
    ("quantize {m} -o {f}/o.rknn -t rk3588 --dataset {f}/nowhere.txt", "file '{f}/nowhere.txt' does not exist"),
    ("quantize {m} -o {f}/o.rknn -t rk3588 --dataset {f}/empty.txt", "there is no valid data in the calibration list"),
    (
        "quantize {m} -o {f}/o.rknn -t rk3588 --dataset {f}/missing.txt",
        "missing.txt line 1: quantize: file 'nowhere.png' does not exist",
    ),
    ("quantize {m} -o {f}/o.rknn -t rk3588 --dataset {f}/two.txt", "two.txt line 1"),
    ("quantize {m} -o {f}/o.rknn -t rk3588 --dataset {f}/nan.txt", "no calibration value of input 'image' is a finite number"),
    ("quantize {m} -o {f}/o.rknn -t rk3588 --dataset {f}/nan.txt --algorithm nromal", "Invalid quantized_algorithm 'nromal'"),
    ("quantize {m} -o {f}/o.rknn -t rk3588 --dataset {f}/nan.txt --dtype w8a9", "Invalid quantized_dtype 'w8a9'"),
    ("convert {m} --platfrom rk3588 -o {f}/o.rknn", "did you mean '--target-platform'?"),
    ("profile {m} --platfrom rk3588", "did you mean '--platform'?"),
    ("profile {m} --cores 99", "no chip has 99 NPU cores; expected --cores with numbers from 1 to 3, found 99"),
    ("run {m} -t rk3588 --input imgae={f}/a.npy", "no input 'imgae'; expected one of image. Hint: did you mean 'image'?"),
    ("convert {m} -o {f}/o.rknn -t rv9999", "Invalid target_platform 'rv9999'; expected one of rk2118, "),
    ("profile {m} --platform rk3588 --cores 99", "rk3588 has 3 NPU cores, not 99"),
    ("profile {m} --platform rk3588 --cores 0", "a number of cores must be at least 1; found 0"),
    ("run {m} -t rk3588 --input {f}/small.npy", "input 'image' has the wrong shape; expected [1,3,64,64], found [1,3,8,8]"),
    ("run {m} -t rk3588 --input {f}/nhwc.npy", "add --layout nhwc"),
    ("run {m} -t rk3588 --input {f}/a.npy {f}/b.npy", "the model has 1 input(s), found 2"),
    ("run {m} -t rk3588 --input {f}/nowhere.png", "cannot open '{f}/nowhere.png'"),
    ("convert {m} --outpt {f}/o.rknn", "is required; '--outpt' is not an option, did you mean '--output'?"),
    ("quantize {m} -o {f}/o.rknn --datset {f}/two.txt", "'--datset' is not an option, did you mean '--dataset'?"),
    ("quantize {m} -o {f}/o.rknn --dataset {f}/two.txt --algorithm nromal", "did you mean 'normal'?"),
    ("quantize {m} -o {f}/o.rknn --dataset {f}/two.txt --method chanel", "did you mean 'channel'?"),
    ("quantize {m} -o {f}/o.rknn --dataset {f}/two.txt --dtype w8a9", "did you mean 'w8a8'?"),
    ("convert {m} -o {f}/o.rknn --float-dtype flota32", "--float-dtype: 'flota32' is not one of float16, float32; did you mean"),
    ("run {m} -t rk3588 --layout nhcw", "--layout: 'nhcw' is not one of nchw, nhwc; did you mean 'nchw'?"),
    ("convert {m} -o {f}/o.rknn --op-target scores=cpuu", "Invalid op_target 'cpuu' for 'scores', expect in"),
    ("convert {m} -o {f}/o.rknn --op-target scores=cpuu", "did you mean 'cpu'?"),
    ("profile {m} -t rk3588 --op-target scores=cpuu", "Invalid op_target 'cpuu' for 'scores', expect in"),
    (
        "convert {m} -o {f}/o.rknn --disable measure_tensors",
        "the step 'measure_tensors' cannot be left out. Hint: nothing is quantized",
    ),
    ("convert {m} -o {f}/o.rknn --stop-after correct_bias", "'correct_bias' is a step of quantization, not a pass"),
    ("convert {m} -o {f}/o.rknn --stop-after fuze_clip", "did you mean 'fuse_clip'?"),
    ("convert {m} -o {f}/o.rknn --outputs imag", "did you mean 'image'?"),
    ("convert {m} --platform rk3588 -o {f}/o.rknn", "did you mean '--target-platform'?"),
    ("profile {m} --dtype w8a61", "did you mean 'w8a16'?"),
    ("build --help", "there is no command 'build'; did you mean 'convert'?"),
    ("build {m}", "there is no command 'build'; did you mean 'convert'?"),
    ("profil --help", "there is no command 'profil'; did you mean 'profile'?"),
    ("edit {m}", "--output (the ONNX model to write) is required"),
    ("edit", "model (ONNX model) and --output (the ONNX model to write) are required"),
    ("convert {m} {f}/o.rknn -t rk3588", "--output (the .rknn to write) is required; write '-o {f}/o.rknn'"),
    ("convert {m} -o {f}/o.rknn -t", "--target-platform needs a value"),
    ("convert {m} -o {f}/o.rknn --mean 127.5 127.5 127.5", "numbers of one list are joined by commas, without blanks"),
    ("run {m} {f}/a.npy", "write '--input {f}/a.npy'"),
    ("edit {f}/text.rknn -o {f}/o.onnx", "a finished .rknn cannot be edited. Hint: edit the ONNX model it was made from"),
    ("encrypt {m}", "the model is not a finished .rknn, which alone can be encrypted. Hint: convert it first"),
    ("quantize {m} -o {f}/o.rknn --quantize-weight", "'--quantize-weight' is an option of 'openrknn convert'"),
    ("run {m} -t rk3588 --input {f}/two.txt", "the file for input 'image' is neither a picture nor an array"),
    ("run {m} -t rk3588 --input {f}/two.txt", "name the files of one sample themselves"),
    ("run {m} --cores 99", "'--cores' is an option of 'openrknn profile', not of 'openrknn run'\n"),
    ("run {m} --inptu a", "'--inptu' is not an option, did you mean '--input'?\n"),
    ("-t rk3588 convert {m} -o {f}/o.rknn", "'-t' belongs after the command: 'openrknn convert ... -t'"),
    ("run {m} -t rk3588 --input image=", "'image=' names no file; expected NAME=FILE"),
    ("run {m} -t rk3588 --input {f}", "cannot read '{f}': it is a folder"),
    ("run {m} -t rk3588 --out {f}/nowhere", "--out: there is no folder '{f}/nowhere'"),
    ("compare {m} {m} --images {f}/two.txt", "--images: '{f}/two.txt' is a file, not a folder"),
    ("compare {m} {m} --images {f}/empty", "there are no pictures in '{f}/empty'; expected jpg, png, bmp or npy files"),
    ("compare {m}", "compare needs --images FOLDER or --dataset LIST"),
    ("convert {m} -o {f}", "cannot write '{f}': it is a folder"),
    ("convert {m} -o {m}", "would overwrite the model that is read"),
    ("convert {f}/a.npy -o {f}/o.rknn", "the file holds one NumPy array, not a model"),
    ("convert {f}/picture.onnx -o {f}/o.rknn", "the file is a picture, not a model"),
    ("info {f}/program.py", "the file is a Python program, not a model"),
    ("info {f}/none.onnx", "none.onnx: import: the file is empty"),
    ("convert {f}/empty -o {f}/o.rknn", "this is a folder; expected a model file"),
    ("run {f}/cut.rknn", "the file is cut off"),
    ("run {m} -t rk3588 --loop 0", "--loop: '0' is not a whole number from 1 to 1000000"),
    ("run {m} -t rk3588 --loop abc", "--loop: 'abc' is not a whole number from 1 to 1000000"),
    ("run {m} -t rk3588 --input image={f}/a.npy --input image={f}/b.npy", "two files are given for input 'image'; expected one"),
    ("run {m} -t rk3588 --input {f}/a.npy --input image={f}/b.npy", "two files are given for input 'image'; expected one"),
    ("profile {m} --cores two", "'--cores' needs a whole number, found 'two'"),
    ("convert {m} -o {f}/o.rknn -O high", "'--optimization-level' needs a whole number, found 'high'"),
    ("convert {m} -o {f}/o.rknn --batch-size two", "'--batch-size' needs a whole number, found 'two'"),
    ("quantize {m} -o {f}/o.rknn --dataset {f}/two.txt --auto-hybrid abc", "'--auto-hybrid' needs a number, found 'abc'"),
    ("info {m} --json=x", "'--json' takes no value"),
    ("info /", "/: import: this is a folder"),
    ("convert {m} -o {f}/o.rknn -t 3588", "did you mean 'rk3588'?"),
    ("quantize {m} -o {f}/o.rknn -t rk3588 --dataset /dev/null", "'/dev/null' is a device, not a regular file"),
    (
        "convert {m} -o {f}/o.rknn -t rk3588 --dynamic-input 1,3,64",
        "the shape of input 'image' in dynamic_input has the wrong number of dimensions",
    ),
    ("run {m} -t rk3588 --engine registr", "did you mean 'registers'?"),
    ("quantize {m} -o {f}/o.rknn --dataset {f}/two.txt --dtype int8", "did you mean 'w8a8'?"),
    ("quantize {m} -o {f}/o.rknn --dataset {f}/two.txt --dtype fp16", "floats need no quantization"),
    ("quantize {m} -o {f}/o.rknn -t rk3588 --dataset {f}/a.npy --dtype w4a16", "'w4a16' for rk3588, expect in ['w8a8'"),
    ("quantize {m} -o {f}/o.rknn --dataset {f}/a.npy", "the calibration list is not a text file"),
    ("quantize {m} -o {f}/o.rknn --dataset {f}", "'{f}' is a folder, not a file. Hint: the calibration list is a text file"),
    ("quantize {m} -o {f}/o.rknn --dataset {f}/two.txt --std 0,0,0", "zero is not allowed"),
    ("convert {m} -o {f}/o.rknn --weights x.bin", "models of onnx are one file; expected no weights file, found 'x.bin'"),
    ("convert {m} {m} -o {f}/o.rknn", "'{m}' was not expected\n"),
    ("analyse {m}", "analyse needs a sample. Hint: give --dataset"),
    ("completion tcsh", "'tcsh' is not one of bash, zsh, fish"),
    ("help", "there is no command 'help'; did you mean '--help'?"),
    ("--versoin", "did you mean '--version'?"),
    ("convert --yml {f}/nowhere.yml -o {f}/out", "cannot open '{f}/nowhere.yml'"),
]


@pytest.mark.parametrize("arguments, text", COMMANDS, ids=[c[0].replace("{m} ", "").replace("{f}/", "")[:60] for c in COMMANDS])
def test_command_line(arguments, text, files, shapes_model, openrknn):
    fill = lambda pattern: pattern.replace("{m}", str(shapes_model)).replace("{f}", str(files))
    done = openrknn(*map(fill, arguments.split()))
    assert done.returncode != 0
    assert fill(text) in done.stderr
    assert not (files / "o.rknn").exists()


def message(capfd, call):
    """What the toolkit writes when a call fails, the exception's text included."""
    try:
        assert call() == -1
        text = ""
    except ValueError as error:
        text = str(error)
    return text + capfd.readouterr().err


def test_python_calls(capfd, files, shapes_model):
    rknn = RKNN()
    assert "did you mean 'target_platform'?" in message(capfd, lambda: rknn.config(target_plaform="rk3588"))
    assert "did you mean 'mean_values'?" in message(capfd, lambda: rknn.config(target_platform="rk3588", mean_value=[[1, 2, 3]]))
    assert "it is a model of onnx: load it with load_onnx" in message(capfd, lambda: rknn.load_rknn(str(shapes_model)))
    rknn.config(target_platform="rk3588")
    assert "load it with load_onnx" in message(capfd, lambda: rknn.load_tflite(str(shapes_model)))
    assert rknn.load_onnx(str(shapes_model)) == 0
    assert "is an empty list" in message(capfd, lambda: rknn.build(do_quantization=True, dataset=[]))
    build = lambda dataset: message(capfd, lambda: rknn.build(do_quantization=True, dataset=dataset))
    assert "Invalid dataset[0] 'a b.png' for build: a blank in a file name" in build(["a b.png"])
    assert "files of one sample are a list ['a.png', 'b.png']" in build(["a.png b.png"])
    assert "Invalid dataset[1] 'b.png\\n' for build: a line break" in build([str(files / "a.npy"), "b.png\n"])
    assert "found ndarray; save arrays with numpy.save" in build([np.zeros((1, 3, 64, 64), np.float32)])
    assert "Invalid dataset[0] for build: expect a file name" in build([(name for name in ["a.npy"])])
    assert "a list of samples, found generator" in build(name for name in ["a.npy"])
    assert rknn.build(do_quantization=True, dataset=[str(files / "a.npy"), files / "b.npy"]) == 0


def test_rules_that_cannot_be_left_out(capfd, files, shapes_model, openrknn):
    """Python and the command line say the same: rules of other optimizers are warned of, steps without which there is no quantized
    network are refused."""
    convert = ("convert", shapes_model, "-t", "rk3588", "-o", files / "rules.rknn")
    for name, text in (
        ("fold_constnts", "'fold_constnts' in disable_rules is not known and is ignored, did you mean 'fold_constants'?"),
        ("no_such_rule_at_all", "'no_such_rule_at_all' in disable_rules is not known and is ignored!"),
    ):
        RKNN().config(target_platform="rk3588", disable_rules=[name])
        assert text in capfd.readouterr().err
        done = openrknn(*convert, "--disable", name)
        assert done.returncode == 0 and text in done.stderr, done.stderr
    refused = "the step 'measure_tensors' cannot be left out"
    assert refused in message(capfd, lambda: RKNN().config(target_platform="rk3588", disable_rules=["measure_tensors"]))
    assert refused in openrknn(*convert, "--disable", "measure_tensors").stderr


def test_quantize_weight_beside_quantization(capfd, files, shapes_model, openrknn):
    text = "The 'quantize_weight' has no effect when the whole model is quantized"
    rknn = RKNN()
    rknn.config(target_platform="rk3588", quantize_weight=True)
    assert rknn.load_onnx(str(shapes_model)) == 0
    assert rknn.build(do_quantization=True, dataset=[str(files / "a.npy")]) == 0 and text in capfd.readouterr().err
    (files / "one.txt").write_text("a.npy\n")
    done = openrknn(
        "convert", shapes_model, "-o", files / "q.rknn", "-t", "rk3588", "--quantize-weight", "--dataset", files / "one.txt"
    )
    assert done.returncode == 0 and text in done.stderr, done.stderr


def test_python_calls_in_the_wrong_order(capfd):
    rknn = RKNN()
    assert "load_onnx needs config() first!" in message(capfd, lambda: rknn.load_onnx("x.onnx"))
    assert "build needs config() and a loaded model first!" in message(capfd, rknn.build)
    assert "export_rknn needs config(), a loaded model and build() first!" in message(capfd, lambda: rknn.export_rknn("x.rknn"))


def test_python_values_of_the_wrong_kind(capfd, shapes_model):
    rknn = RKNN()
    config = lambda **keys: message(capfd, lambda: rknn.config(**keys))
    assert "expect the name of a chip, e.g. 'rk3566'" in config(target_platform=3588)
    assert "Invalid mean_values '127', expect a list of lists" in config(target_platform="rk3588", mean_values="127")
    rknn.config(target_platform="rk3588")
    assert rknn.load_onnx(str(shapes_model)) == 0
    for value in ("False", b"False", 2.5, None, []):
        text = message(capfd, lambda: rknn.build(do_quantization=value))
        assert f"Invalid do_quantization {value!r}, expect True or False!" in text
    assert rknn.build(do_quantization=np.False_) == 0 and rknn.init_runtime() == 0
    run = lambda value: message(capfd, lambda: rknn.inference([value]))
    assert "found the file name 'dog.jpg': read the file first" in run("dog.jpg")
    assert "Input 'image' is not an array" in run(None)
    assert "expect a list of files, one per input, found None" in message(capfd, lambda: rknn.accuracy_analysis(None))


def test_pictures_in_the_other_order_are_refused(capfd, shapes_model):
    rknn = RKNN()
    rknn.config(target_platform="rk3588")
    assert rknn.load_onnx(str(shapes_model)) == 0
    assert rknn.build(do_quantization=False) == 0 and rknn.init_runtime() == 0
    for shape in ((1, 3, 64, 64), (3, 64, 64)):
        text = message(capfd, lambda: rknn.inference([np.zeros(shape, np.float32)]))
        assert "expect 'nhwc' like (1, 64, 64, 3)! Set data_format='nchw' if that is its order!" in text
    text = message(capfd, lambda: rknn.inference([np.zeros((1, 32, 32, 3), np.float32)]))
    assert "expect 'nhwc' like (1, 64, 64, 3)!" in text and "Set data_format" not in text


def test_a_misspelt_target_gets_a_suggestion(capfd, shapes_model):
    rknn = RKNN()
    rknn.config(target_platform="rk3588")
    assert rknn.load_onnx(str(shapes_model)) == 0 and rknn.build(do_quantization=False) == 0
    assert "did you mean 'rk3588'?" in message(capfd, lambda: rknn.init_runtime(target="rk3588x"))


def test_run_takes_pictures(tmp_path, shapes_model, openrknn):
    picture = shapes_model.parent / "pictures" / "shape_000.png"
    done = openrknn("run", shapes_model, "-t", "rk3588", "--input", picture, "--out", tmp_path)
    assert done.returncode == 0, done.stderr
    assert np.load(tmp_path / "output_0.npy").shape == (1, 8)


def test_a_misspelt_layer_gets_a_suggestion(tmp_path, shapes_model, openrknn):
    done = openrknn("convert", shapes_model, "-o", tmp_path / "o.rknn", "-t", "rk3588", "--op-target", "scorse=cpu")
    assert "did you mean 'scores'?" in done.stderr


def test_texts_name_the_list_of_samples(capfd, files, shapes_model):
    rknn = RKNN()
    rknn.config(target_platform="rk3588")
    assert rknn.load_onnx(str(shapes_model)) == 0
    samples = [str(files / "a.npy"), str(files / "nowhere.npy")]
    text = message(capfd, lambda: rknn.build(do_quantization=True, dataset=samples))
    assert "dataset[1]" in text and "nowhere.npy" in text and "/tmp" not in text.replace(str(files), "")
    half = np.zeros((1, 3, 64, 64), np.float32)
    half[..., :32] = np.nan
    np.save(files / "half.npy", half)
    capfd.readouterr()
    assert rknn.build(do_quantization=True, dataset=[str(files / "a.npy"), str(files / "half.npy")]) == 0
    warnings = [line for line in capfd.readouterr().err.splitlines() if "not finite" in line]
    assert len(warnings) == 1, "one line, however many tensors the values reach"
    assert "'image'" in warnings[0] and "first in dataset[1]" in warnings[0] and "more tensor" in warnings[0]


@pytest.mark.parametrize("normalization, is_told", [({}, True), ({"std_values": [[255] * 3]}, False)])
def test_lost_accuracy_leads_to_missing_normalization(normalization, is_told, tmp_path, shapes_model, capfd):
    import onnx
    from onnx import TensorProto, helper, numpy_helper

    # Pixels of 255 do not fit into float16 after the product, numbers up to 1 do, though they lose accuracy after the difference.
    nodes = [
        helper.make_node("Mul", ["x", "large"], ["m"]),
        helper.make_node("Add", ["m", "huge"], ["s"]),
        helper.make_node("Sub", ["s", "huge"], ["y"]),
    ]
    port = lambda name, shape: helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)
    constants = [numpy_helper.from_array(np.array(v, np.float32), n) for n, v in (("large", 1000), ("huge", 60000))]
    graph = helper.make_graph(nodes, "g", [port("x", [1, 3, 64, 64])], [port("y", None)], constants)
    path = tmp_path / "products.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    rknn = RKNN()
    rknn.config(target_platform="rk3588", optimization_level=0, **normalization)
    assert rknn.load_onnx(str(path)) == 0 and rknn.build(do_quantization=False) == 0
    capfd.readouterr()
    assert rknn.accuracy_analysis([str(shapes_model.parent / "pictures" / "shape_000.png")], output_dir=None) == 0
    assert ("The input 'x' is fed with pixels from 0 to 255 as they are" in capfd.readouterr().err) == is_told


def operand_mistakes():
    """name, operator, inputs as (name, shape), attributes; the last input is wrong."""
    conv = [("x", (1, 4, 8, 8)), ("w", (6, 4, 3, 3))]
    return [
        ("Conv", [*conv, ("b", (5,))], {}),
        ("ConvTranspose", [("x", (1, 4, 8, 8)), ("w", (4, 6, 3, 3)), ("b", (1,))], {}),
        ("Conv", [("x", (1, 4, 8, 8)), ("w", (4, 1, 3, 3)), ("b", (4, 1))], {"group": 4}),
        ("BatchNormalization", [("x", (1, 4, 8, 8)), *((k, (4,)) for k in "sbm"), ("v", (3,))], {}),
        ("InstanceNormalization", [("x", (1, 4, 8, 8)), ("s", (4,)), ("b", (3,))], {}),
        ("LayerNormalization", [("x", (1, 4, 8)), ("s", (7,))], {}),
        ("LSTM", [("x", (3, 1, 4)), ("w", (1, 8, 4)), ("r", (1, 8, 2)), ("b", (1, 15))], {"hidden_size": 2}),
        ("GRU", [("x", (3, 1, 4)), ("w", (1, 6, 4)), ("r", (1, 6, 3))], {}),
        ("Gemm", [("x", (2, 4)), ("w", (4, 6)), ("c", (5,))], {}),
        ("MatMul", [("x", (2, 4)), ("w", (5, 6))], {}),
        ("Add", [("x", (2, 4)), ("w", (3,))], {}),
        ("PRelu", [("x", (1, 4, 8, 8)), ("s", (3, 1, 1))], {}),
        ("Concat", [("x", (1, 4)), ("w", (2, 4))], {"axis": 1}),
    ]


@pytest.mark.parametrize("operator, inputs, attributes", operand_mistakes())
def test_a_wrong_operand_is_refused_by_the_load(operator, inputs, attributes, tmp_path, capfd):
    import onnx
    from onnx import TensorProto, helper, numpy_helper

    node = helper.make_node(operator, [name for name, _ in inputs], ["y"], name="layer_7", **attributes)
    (x, shape), *weights = inputs
    graph = helper.make_graph(
        [node],
        "g",
        [helper.make_tensor_value_info(x, TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(np.ones(s, np.float32), n) for n, s in weights],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.save(model, tmp_path / "wrong.onnx")
    rknn = RKNN()
    rknn.config(target_platform="rk3588")
    text = message(capfd, lambda: rknn.load_onnx(str(tmp_path / "wrong.onnx")))
    for part in ("wrong.onnx", f"'layer_7' ({operator})", "expected", "found"):
        assert part in text
