"""A small language model in llama.cpp's file format (GGUF), with nothing but Python: random weights, so it answers with nonsense,
but a real byte-level BPE tokenizer and a chat template with tools and reasoning. tiny_model.py FILE writes one."""
import array
import collections
import pathlib
import random
import re
import struct
import sys

# The first tokens, so that a request can push one with logit_bias.
CONTROL = ["<|begin|>", "<|im_start|>", "<|im_end|>"]
MARKS = ["<tool_call>", "</tool_call>", "<think>", "</think>"]
SPECIAL = CONTROL + MARKS
END = SPECIAL.index("<|im_end|>")
TOOL_CALL = SPECIAL.index("<tool_call>")

# ChatML, tools in the form of Hermes. Reasoning history and the switch enable_thinking are written, so that a count shows them.
TEMPLATE = """{{- bos_token }}
{%- if tools %}<|im_start|>system
# Tools
<tools>
{%- for tool in tools %}
{{ tool | tojson }}
{%- endfor %}
</tools>
For each function call, return a json object with function name and arguments within <tool_call></tool_call> XML tags:
<tool_call>{"name": <function-name>, "arguments": <args-json-object>}</tool_call><|im_end|>
{% endif %}
{%- for message in messages %}<|im_start|>{{ message.role }}
{% if message.reasoning_content %}<think>
{{ message.reasoning_content }}
</think>
{% endif %}
{%- if message.content %}{{ message.content }}{% endif %}
{%- if message.tool_calls %}
{%- for call in message.tool_calls %}<tool_call>{"name": "{{ call.function.name }}", "arguments": {{ call.function.arguments | tojson }}}</tool_call>
{%- endfor %}
{%- endif %}<|im_end|>
{% endfor %}
{%- if add_generation_prompt %}<|im_start|>assistant
{% if enable_thinking is defined and enable_thinking is false %}<think>

</think>

{% endif %}
{%- endif %}"""

WIDTH, LAYERS, HEADS, KV_HEADS, INNER = 128, 4, 4, 2, 256
MERGES = 1500
WORDS = re.compile(r"'(?:[sdmt]|ll|ve|re)| ?[^\W\d_]+| ?\d+| ?(?:[^\s\w]|_)+|\s+(?!\S)|\s+")


def byte_letters():
    """GPT-2's letter for each byte: printable ones stand for themselves."""
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = iter(range(256, 512))
    return [chr(byte if byte in printable else next(others)) for byte in range(256)]


def learn_merges(text, count):
    """Byte pair encoding: the most frequent pair of neighbours becomes one token, again and again."""
    letters = byte_letters()
    words = collections.Counter(tuple(letters[byte] for byte in word.encode()) for word in WORDS.findall(text))
    merges = []
    while len(merges) < count:
        pairs = collections.Counter()
        for word, times in words.items():
            for pair in zip(word, word[1:]):
                pairs[pair] += times
        if not pairs:
            break
        best = min(pairs, key=lambda pair: (-pairs[pair], pair))
        merges.append(best)
        merged = collections.Counter()
        for word, times in words.items():
            out, at = [], 0
            while at < len(word):
                pair = word[at:at + 2] == best
                out.append(word[at] + word[at + 1] if pair else word[at])
                at += 2 if pair else 1
            merged[tuple(out)] += times
        words = merged
    return merges


class File:
    """A GGUF file: members, descriptions of tensors, and their values."""
    U32, I32, F32, BOOL, STRING, ARRAY = 4, 5, 6, 7, 8, 9
    ALIGNMENT = 32

    def __init__(self):
        self.members, self.tensors, self.sizes = [], [], []

    @staticmethod
    def text(value):
        data = value.encode()
        return struct.pack("<Q", len(data)) + data

    def member(self, key, kind, value):
        form = {self.U32: "<I", self.I32: "<i", self.F32: "<f", self.BOOL: "<?"}.get(kind)
        data = self.text(value) if kind == self.STRING else struct.pack(form, value)
        self.members.append(self.text(key) + struct.pack("<I", kind) + data)

    def list(self, key, kind, values):
        items = b"".join(map(self.text, values)) if kind == self.STRING else struct.pack(f"<{len(values)}i", *values)
        self.members.append(self.text(key) + struct.pack("<IIQ", self.ARRAY, kind, len(values)) + items)

    def tensor(self, name, values, *shape):
        """values: as many floats as the shape has places, rows last."""
        self.tensors.append((name, shape, array.array("f", values).tobytes()))

    def write(self, path):
        head = b"GGUF" + struct.pack("<IQQ", 3, len(self.tensors), len(self.members)) + b"".join(self.members)
        offset, data = 0, b""
        for name, shape, values in self.tensors:
            head += self.text(name) + struct.pack(f"<I{len(shape)}QIQ", len(shape), *reversed(shape), 0, offset)
            data += values + bytes(-len(values) % self.ALIGNMENT)
            offset = len(data)
        pathlib.Path(path).write_bytes(head + bytes(-len(head) % self.ALIGNMENT) + data)


def write(path, text, context=8192, seed=1):
    """text: what the tokenizer is made from. context: tokens."""
    merges = learn_merges(text, MERGES)
    tokens = SPECIAL + sorted(byte_letters()) + ["".join(pair) for pair in merges]
    file = File()
    file.member("general.architecture", File.STRING, "llama")
    file.member("general.name", File.STRING, "tiny")
    file.member("general.file_type", File.U32, 0)
    for key, value in {"context_length": context, "embedding_length": WIDTH, "block_count": LAYERS, "feed_forward_length": INNER,
                       "attention.head_count": HEADS, "attention.head_count_kv": KV_HEADS, "vocab_size": len(tokens),
                       "rope.dimension_count": WIDTH // HEADS}.items():
        file.member("llama." + key, File.U32, value)
    file.member("llama.attention.layer_norm_rms_epsilon", File.F32, 1e-5)
    file.member("tokenizer.ggml.model", File.STRING, "gpt2")
    file.member("tokenizer.ggml.pre", File.STRING, "gpt-2")
    file.list("tokenizer.ggml.tokens", File.STRING, tokens)
    # 1: a text, 3: control, 4: a mark that a text may have.
    file.list("tokenizer.ggml.token_type", File.I32, [3] * len(CONTROL) + [4] * len(MARKS) + [1] * (len(tokens) - len(SPECIAL)))
    file.list("tokenizer.ggml.merges", File.STRING, [" ".join(pair) for pair in merges])
    file.member("tokenizer.ggml.bos_token_id", File.U32, SPECIAL.index("<|begin|>"))
    file.member("tokenizer.ggml.eos_token_id", File.U32, END)
    file.member("tokenizer.ggml.add_bos_token", File.BOOL, False)  # the template writes it
    file.member("tokenizer.chat_template", File.STRING, TEMPLATE)

    chance = random.Random(seed)

    def weights(name, rows, columns):
        scale = columns ** -0.5
        file.tensor(name, (chance.gauss(0, scale) for _ in range(rows * columns)), rows, columns)

    def norm(name):
        file.tensor(name, [1.0] * WIDTH, WIDTH)

    kv_width = WIDTH // HEADS * KV_HEADS
    weights("token_embd.weight", len(tokens), WIDTH)
    for layer in range(LAYERS):
        block = f"blk.{layer}."
        norm(block + "attn_norm.weight")
        weights(block + "attn_q.weight", WIDTH, WIDTH)
        weights(block + "attn_k.weight", kv_width, WIDTH)
        weights(block + "attn_v.weight", kv_width, WIDTH)
        weights(block + "attn_output.weight", WIDTH, WIDTH)
        norm(block + "ffn_norm.weight")
        weights(block + "ffn_gate.weight", INNER, WIDTH)
        weights(block + "ffn_up.weight", INNER, WIDTH)
        weights(block + "ffn_down.weight", WIDTH, INNER)
    norm("output_norm.weight")
    weights("output.weight", len(tokens), WIDTH)
    file.write(path)


if __name__ == "__main__":
    write(sys.argv[1], (pathlib.Path(__file__).resolve().parents[2] / "LICENSE").read_text(encoding="utf-8"))
