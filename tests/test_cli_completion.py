"""Completion scripts, manual pages and the options made from the keys of config(): all come from the declared options."""

import os
import pty
import re
import select
import shutil
import subprocess
import time

import pytest
from rknn.api import options as config_options

needs = lambda program: pytest.mark.skipif(shutil.which(program) is None, reason=f"{program} is not installed")


@pytest.fixture
def script(tmp_path, openrknn):
    """script(shell): the file of its completion script."""

    def make(shell):
        path = tmp_path / f"openrknn.{shell}"
        done = openrknn("completion", shell, "-o", path)
        assert done.returncode == 0, done.stderr
        assert path.read_text() == openrknn("completion", shell).stdout
        return path

    return make


def bash_replies(script, *words):
    """What bash offers for the last of the words."""
    quoted = " ".join(f"'{word}'" for word in words)
    code = f"source {script}; COMP_WORDS=(openrknn {quoted}); COMP_CWORD={len(words)}; _openrknn; printf '%s\\n' \"${{COMPREPLY[@]}}\""
    done = subprocess.run(["bash", "--norc", "-c", code], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0 and done.stderr == "", done.stderr
    return [line for line in done.stdout.split("\n") if line]


def typed(command, setup, keys, expected):
    """Types into an interactive shell on a terminal until `expected` appears; returns the screen."""
    child, terminal = pty.fork()
    if child == 0:
        os.environ.update(TERM="dumb", PS1="$ ", HISTFILE="")
        os.execvp(command[0], command)
    screen, end = b"", time.monotonic() + 60
    try:
        os.write(terminal, setup.encode() + b"\n")
        sent = False
        while time.monotonic() < end and expected.encode() not in screen.split(b"READY\r")[-1]:
            if select.select([terminal], [], [], 0.2)[0]:
                screen += os.read(terminal, 65536)
            elif not sent and b"READY\r" in screen:
                os.write(terminal, keys.encode())
                sent = True
        return screen.split(b"READY\r")[-1].decode(errors="replace")
    except OSError:
        return screen.decode(errors="replace")
    finally:
        os.close(terminal)
        os.waitpid(child, 0)


@needs("bash")
def test_bash_completes_commands_options_and_values(tmp_path, script, openrknn):
    bash = script("bash")
    assert {"convert", "quantize", "hybrid-step1", "man"} <= set(bash_replies(bash, ""))
    assert bash_replies(bash, "conv") == ["convert"]
    assert bash_replies(bash, "convert", "--sparse") == ["--sparse-infer"]
    assert bash_replies(bash, "convert", "m.onnx", "--target-platform", "rk358") == ["rk3588"]
    assert bash_replies(bash, "convert", "-t", "rk358") == ["rk3588"]
    assert bash_replies(bash, "convert", "--target-platform", "=", "rk358") == ["rk3588"]
    assert bash_replies(bash, "convert", "--float-dtype", "=") == ["float16", "float32"]
    assert bash_replies(bash, "convert", "--batch-size", "") == []
    assert bash_replies(bash, "completion", "f") == ["fish"]
    assert bash_replies(bash, "encrypt", "--level", "") == ["1", "2", "3"]
    for command in ("convert", "quantize", "analyse", "codegen", "hybrid-step1"):
        for option in ("--quantized-hybrid-level", "--optimization-level", "-O"):
            assert bash_replies(bash, command, option, "") == ["0", "1", "2", "3"]
    (tmp_path / "a model.onnx").touch()
    assert bash_replies(bash, "convert", f"{tmp_path}/a") == [f"{tmp_path}/a model.onnx"]
    for command in ("convert", "codegen", "hybrid-step1"):  # whatever --help knows
        options = set(re.findall(r"(?<![\w-])--[a-zA-Z][\w-]*", openrknn(command, "--help").stdout.split("Examples")[0]))
        assert options - set(bash_replies(bash, command, "--")) <= {"--help-all"}, command


@needs("bash")
def test_bash_completes_on_a_terminal(script):
    screen = typed(["bash", "--norc", "-i"], f"source {script('bash')}; echo READ''Y", "openrknn conv\t", "openrknn convert ")
    assert "openrknn convert " in screen


@needs("zsh")
def test_zsh_completes_on_a_terminal(script):
    setup = f"autoload -U compinit; compinit -u -D; source {script('zsh')}; echo READ''Y"
    assert "openrknn convert" in typed(["zsh", "-f", "-i"], setup, "openrknn conv\t", "openrknn convert")
    setup += "; :"
    screen = typed(["zsh", "-f", "-i"], setup, "openrknn convert --sparse\t", "--sparse-infer")
    assert "--sparse-infer" in screen


@needs("fish")
def test_fish_completes(script, tmp_path):
    fish = script("fish")

    def replies(line):
        done = subprocess.run(
            ["fish", "--no-config", "-c", f"source {fish}; complete -C '{line}'"],
            capture_output=True,
            text=True,
            timeout=60,
            env=dict(os.environ, HOME=str(tmp_path)),
        )
        assert done.returncode == 0, done.stderr
        return [reply.split("\t")[0] for reply in done.stdout.splitlines()]

    assert "convert" in replies("openrknn conv")
    assert replies("openrknn convert --sparse") == ["--sparse-infer"]
    assert replies("openrknn convert -t rk358") == ["rk3588"]
    assert "--sparse-infer" not in replies("openrknn info --s")


def test_unknown_shells_are_refused(openrknn):
    done = openrknn("completion", "tcsh")
    assert done.returncode == 2 and "fish" in done.stderr


def test_manual_pages(tmp_path, openrknn):
    done = openrknn("man", "-o", tmp_path / "man1")
    assert done.returncode == 0, done.stderr
    pages = {page.name for page in (tmp_path / "man1").iterdir()}
    assert {"openrknn.1", "openrknn-convert.1", "openrknn-hybrid-step2.1"} <= pages
    assert (tmp_path / "man1" / "openrknn-run.1").read_text() == openrknn("man", "run").stdout
    if not shutil.which("groff"):
        pytest.skip("groff is not installed")
    for page in sorted((tmp_path / "man1").iterdir()):
        shown = subprocess.run(["groff", "-man", "-Tascii", "-P-cbou", "-ww", page], capture_output=True, text=True, timeout=60)
        assert shown.returncode == 0 and shown.stderr == "", (page, shown.stderr)
        assert "NAME" in shown.stdout and "OPTIONS" in shown.stdout
        if page.name == "openrknn-convert.1":
            assert (
                "--sparse-infer" in shown.stdout and "EXAMPLES" in shown.stdout and "openrknn convert model.onnx" in shown.stdout
            )


@needs("man")
def test_manual_pages_in_man(tmp_path, openrknn):
    assert openrknn("man", "-o", tmp_path).returncode == 0
    shown = subprocess.run(["man", "-l", tmp_path / "openrknn-edit.1"], capture_output=True, text=True, timeout=60)
    if "minimized" in shown.stdout + shown.stderr:
        pytest.skip("man is a stand-in of a minimized system")
    assert shown.returncode == 0 and "--transform-input" in shown.stdout


@pytest.mark.parametrize("command", ["convert", "quantize", "analyse", "codegen", "hybrid-step1"])
def test_every_key_of_config_is_an_option(openrknn, command):
    known = set(re.findall(r"(?<![\w-])--[a-zA-Z][\w-]*", openrknn(command, "--help").stdout))
    own_name = {"batch_size": "--quantization-batch-size"}  # --batch-size is that of the built model
    keys = {*config_options.KEYS, *config_options.TOOLKIT1_KEYS}
    if command in ("quantize", "hybrid-step1"):
        keys -= {"quantize_weight"}  # of models whose activations stay float
    for key in keys:
        assert own_name.get(key, "--" + key.replace("_", "-")) in known, key


def test_options_from_keys_have_their_effect(tmp_path, shapes_model, openrknn):
    def convert(*words):
        return openrknn("convert", shapes_model, "-o", tmp_path / "a.rknn", "-t", "rk3588", *words)

    assert convert("--inputs-yuv-fmt", "nv12").returncode == 0
    assert "uint8" in openrknn("info", tmp_path / "a.rknn").stdout
    wrong = convert("--inputs-yuv-fmt", "nv99")
    assert wrong.returncode == 1 and "nv99" in wrong.stderr
    wrong = convert("--quantized-hybrid-level", "much")
    assert wrong.returncode == 1 and "--quantized-hybrid-level" in wrong.stderr and "line" not in wrong.stderr
    assert "Invalid quantized_hybrid_level 7" in convert("--quantized-hybrid-level", "7").stderr
    assert convert("--channel-mean-value", "128 128 128 128", "--model-pruning").returncode == 0
    assert convert("--dynamic-input", "1,3,64,64", "--dynamic-input", "1,3,32,32").returncode == 0


def test_hybrid_steps(tmp_path, root, shapes_model, openrknn):
    pictures = sorted((root / "examples" / "models" / "pictures").glob("shape_*.png"))[:4]
    (tmp_path / "list.txt").write_text("\n".join(map(str, pictures)))
    folder = tmp_path / "new" / "folder"  # is made
    step1 = ("hybrid-step1", shapes_model, "-t", "rk3588", "--dataset", tmp_path / "list.txt", "-o", folder)
    done = openrknn(*step1, "--proposal", "--auto-hybrid", "0.9999")
    assert done.returncode == 0, done.stderr
    (cfg,) = folder.glob("*.quantization.cfg")
    assert cfg.name in done.stdout
    built = openrknn("hybrid-step2", cfg, "-o", tmp_path / "hybrid.rknn")
    assert built.returncode == 0, built.stderr
    assert openrknn("info", tmp_path / "hybrid.rknn").returncode == 0
    assert openrknn(*step1, "--between", "x").returncode == 1
    blocked = openrknn(*step1[:-1], tmp_path / "list.txt" / "below")
    assert blocked.returncode == 1 and "list.txt/below' cannot be made" in blocked.stderr
    gone = openrknn("hybrid-step2", tmp_path / "gone.quantization.cfg", "-o", tmp_path / "x.rknn")
    assert gone.returncode == 1 and "gone" in gone.stderr and not (tmp_path / "x.rknn").exists()
