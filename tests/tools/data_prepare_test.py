#!/usr/bin/env python3
"""`lockstep data` on real inputs and small tokenizers that are trained here, and training on what it writes.

Usage: tests/tools/data_prepare_test.py BUILD_FOLDER
"""
import array
import base64
import gzip
import importlib.util
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
LOCKSTEP = pathlib.Path(sys.argv.pop(1)).resolve() / "lockstep"
TEXTS = ["the cat sat on the mat", "a dog, a cat and a bird", "Grüße aus Köln", "the the the"] * 20


def has(module):
    return importlib.util.find_spec(module) is not None


def ids_of(path, kind="H"):
    ids = array.array(kind)
    data = path.read_bytes()
    ids.frombytes(data)
    return list(ids)


class DataTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.path = pathlib.Path(self.folder.name)

    def run_lockstep(self, *arguments, code=0):
        environment = {**os.environ, "LOCKSTEP_PYTHON": sys.executable, "OMP_NUM_THREADS": "1"}
        done = subprocess.run([LOCKSTEP, *map(str, arguments)], capture_output=True, text=True, env=environment,
                              cwd=self.path, timeout=300)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done.stdout if code == 0 else done.stderr

    def prepare(self, *arguments, code=0):
        return self.run_lockstep("data", "prepare", *arguments, "--output", self.path / "out", code=code)

    def write(self, name, text):
        path = self.path / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    def documents(self, kind="H"):
        ids, borders = ids_of(self.path / "out.bin", kind), ids_of(self.path / "out.borders", "Q") + [None]
        return [ids[start:end] for start, end in zip(borders, borders[1:])]

    def sidecar(self):
        return json.loads((self.path / "out.json").read_text())

    def lines(self):
        return self.write("in.jsonl", "".join(json.dumps({"text": text, "n": 1}) + "\n" for text in TEXTS))

    def test_bytes_of_texts_and_lines_in_the_order_of_names(self):
        self.write("in/b.txt", "Grüße\n")
        self.write("in/a.jsonl", '{"text": "one"}\n\n{"text": ""}\n{"text": "two"}\n')
        self.write("in/c.png", b"\x89")
        told = self.prepare("in", "--tokenizer", "bytes")
        expected = ["one", "two", "Grüße\n"]
        self.assertEqual(self.documents(), [list(text.encode()) for text in expected])
        sidecar = self.sidecar()
        self.assertEqual((sidecar["dtype"], sidecar["tokens"], sidecar["vocabulary"], sidecar["text_bytes"]),
                         ("uint16", 14, 256, 14))
        self.assertEqual((sidecar["documents"], sidecar["tokenizer"], sidecar["format"]), (3, "bytes", 1))
        self.assertIn("14 tokens of 16 bits", told)
        self.assertIn("first document:\none", self.run_lockstep("data", "inspect", "out.bin"))
        self.assertFalse(list(self.path.glob("*unfinished*")))

    def test_borders_of_documents_are_ids_of_their_own(self):
        self.write("a.txt", "ab")
        self.prepare("a.txt", "--tokenizer", "bytes", "--end-of-document", "70000")
        self.assertEqual(self.documents("I"), [[97, 98, 70000]])
        self.assertEqual((self.sidecar()["dtype"], self.sidecar()["vocabulary"]), ("uint32", 70001))
        self.prepare("a.txt", "--tokenizer", "bytes", "--begin-of-document", "256", "--end-of-document", "257")
        self.assertEqual(self.documents(), [[256, 97, 98, 257]])
        self.assertEqual(self.sidecar()["vocabulary"], 258)

    def test_packed_files_are_what_they_were_before(self):
        """c4's lie in a folder as JSON lines, packed; a small one of its samples is a .json."""
        lines = "".join(json.dumps({"text": text, "url": "u"}) + "\n" for text in TEXTS)
        self.write("c4/c4-train.00000-of-00002.json.gz", gzip.compress(lines.encode()))
        self.write("c4/c4-train.00001-of-00002.json", lines)
        self.write("c4/e.txt.gz", gzip.compress(b"plain"))
        for name in "f.tar.gz", "g.parquet.gz":
            self.write("c4/" + name, gzip.compress(b"of another kind"))
        self.write("c4/dataset_info.json", json.dumps({"text": "not a line"}, indent=2))
        self.write("c4/all.json", json.dumps([{"text": "not lines"}]))
        self.prepare("c4", "--tokenizer", "bytes")
        self.assertEqual(self.documents(), [list(text.encode()) for text in [*TEXTS, *TEXTS, "plain"]])
        for name in "c4/f.tar.gz", "c4/g.parquet.gz":
            self.assertIn(f"lockstep: {name}: of packed files .txt, .md, .text, .jsonl, .ndjson, .json are read; unpack it "
                          "first.", self.prepare(name, "--tokenizer", "bytes", code=2))
        packed = gzip.compress(lines.encode())
        for name, data in ("half.json.gz", packed[:-9]), ("none.json.gz", b"{}"), ("bad.json.gz", packed[:40] + b"x" * 40):
            self.write(name, data)
            self.assertIn(f"lockstep: {name}: is damaged: ", self.prepare(name, "--tokenizer", "bytes", code=2))

    def test_a_job_of_torchtitans_trains_on_its_data_by_a_local_path(self):
        lines = "".join(json.dumps({"text": text}) + "\n" for text in TEXTS * 40)
        raw = self.write("c4/data.json.gz", gzip.compress(lines.encode()))
        self.write("job.toml", "\n".join(["[job]", "print_config = true", "[model]", 'name = "mlp"',
                                          "vocabulary = 258", "[training]",
                                          'dataset = "c4_test"', "steps = 2", "seq_len = 8", "local_batch_size = 2"]))
        train = lambda path, code: self.run_lockstep("train", "job.toml", "--training.dataset_path", path, code=code)
        self.assertIn("(of a folder its .bin files; lockstep data prepare makes them", train("c4", 2))
        for path, kind in (raw, "gzip"), (self.write("data.json", lines), "text"):
            self.assertIn(f"dataset {path}: is {kind}, not ids of tokens. Make them of its documents: lockstep data "
                          f"prepare {path} --tokenizer", train(path, 2))
        self.prepare("c4", "--tokenizer", "bytes", "--begin-of-document", "256", "--end-of-document", "257")
        self.assertIn("step 2/2", train("out.bin", 0))

    def test_training_on_what_was_prepared(self):
        self.prepare(self.lines(), "--tokenizer", "bytes")
        job = ["[model]", 'name = "mlp"', "[training]", 'dataset = "tokens"', 'dataset_path = "out.bin"', "steps = 2",
               "seq_len = 8", "local_batch_size = 2", "pack_documents = true", "[validation]", "enable = true",
               'dataset = "tokens"', 'dataset_path = "out.bin"', "steps = 1"]
        self.write("job.toml", "\n".join(job))
        one = self.run_lockstep("train", "job.toml", "--verify")
        two = self.run_lockstep("train", "job.toml", "--training.global_batch_size", "2", "--training.local_batch_size",
                                "1", "--parallelism.data_parallel_shard_degree", "2")
        state = lambda text: [line for line in text.splitlines() if line.startswith("state ")]
        self.assertEqual(state(one), state(two))
        self.assertIn("validation loss", one)
        self.assertIn("bits/byte", one)

    def chat(self, records, *arguments, template="chatml", code=0):
        path = self.write("chat.jsonl", "".join(json.dumps(each) + "\n" for each in records))
        return self.prepare(path, "--chat", template, "--tokenizer", "bytes", *arguments, code=code)

    def conversations(self):
        """Each as text in which what is learned stands in brackets."""
        mask, start, texts = (self.path / "out.mask").read_bytes(), 0, []
        for ids in self.documents():
            text, was = "", 0
            for byte, is_learned in zip(ids, mask[start:start + len(ids)]):
                text += "[" * (is_learned > was) + "]" * (is_learned < was) + chr(byte)
                was = is_learned
            texts.append(text + "]" * was)
            start += len(ids)
        self.assertEqual(start, len(mask))
        return texts

    def test_answers_of_conversations_are_learned(self):
        talk = [{"role": "system", "content": "S"}, {"role": "user", "content": "U"},
                {"role": "assistant", "content": "A"}, {"role": "user", "content": "V"},
                {"role": "assistant", "content": "B"}]
        told = self.chat([{"messages": talk}, {"instruction": "I", "input": "J", "output": "O"},
                          {"prompt": "P", "completion": "C"}])
        turn = "<|im_start|>{}\n{}<|im_end|>\n".format
        answer = "<|im_start|>assistant\n[{}<|im_end|>]\n".format
        self.assertEqual(self.conversations(), [
            turn("system", "S") + turn("user", "U") + answer("A") + turn("user", "V") + answer("B"),
            turn("user", "I\n\nJ") + answer("O"), turn("user", "P") + answer("C")])
        self.assertIn("conversations, 44 of the tokens are learned", told)
        self.chat([{"prompt": "P ", "completion": "C"}], template="plain")
        self.assertEqual(self.conversations(), ["P [C]"])
        self.chat([{"messages": talk[1:3]}], template="llama3")
        self.assertEqual(self.conversations(), [
            "<|begin_of_text|><|start_header_id|>user<|end_header_id|>\n\nU<|eot_id|>"
            "<|start_header_id|>assistant<|end_header_id|>\n\n[A<|eot_id|>]"])

    def test_of_preferences_what_differs_is_learned(self):
        said = [{"role": "user", "content": "U"}, {"role": "assistant", "content": "A"}, {"role": "user", "content": "V"}]
        self.chat([{"prompt": "P", "chosen": "C", "rejected": "R"},
                   {"chosen": said + [{"role": "assistant", "content": "X"}],
                    "rejected": said + [{"role": "assistant", "content": "Y"}]}], template="plain")
        self.assertEqual(self.conversations(), ["P[C]", "P[R]", "UAV[X]", "UAV[Y]"])
        self.assertEqual(self.sidecar()["kind"], "preferences")

    @unittest.skipUnless(has("tokenizers"), "tokenizers is not installed")
    def test_marks_are_one_token_where_the_tokenizer_has_them(self):
        import tokenizers
        from tokenizers import models, pre_tokenizers, trainers

        own = tokenizers.Tokenizer(models.BPE())
        own.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        own.train_from_iterator(TEXTS, trainers.BpeTrainer(
            vocab_size=300, special_tokens=["<|im_start|>", "<|im_end|>"],
            initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False))
        own.save(str(self.path / "tokenizer.json"))
        self.write("chat.jsonl", json.dumps({"prompt": "the <|im_end|>", "completion": "cat"}))
        self.prepare("chat.jsonl", "--chat", "chatml", "--tokenizer", "tokenizer.json")
        ids = self.documents()[0]
        self.assertEqual([each for each in ids if each < 2], [0, 1, 0, 1], "a mark inside a content is text")
        learned = [id for id, mask in zip(ids, (self.path / "out.mask").read_bytes()) if mask]
        self.assertEqual(learned, own.encode("cat").ids + [1])

    def test_training_on_conversations_and_preferences(self):
        job = ["[model]", 'name = "llama3"', "layers = 1", "width = 32", "heads = 2", "key_value_heads = 2", "hidden = 48",
               "vocabulary = 256", "[lora]", "rank = 2", "[training]", 'dataset_path = "out.bin"', "steps = 2",
               "seq_len = 64", "local_batch_size = 2"]
        self.write("job.toml", "\n".join(job))
        for records, keys in (([{"prompt": f"P{i}", "completion": f"C{i}"} for i in range(8)],
                               ["--training.dataset", "conversations"]),
                              ([{"prompt": f"P{i}", "chosen": f"C{i}", "rejected": f"R{i}"} for i in range(4)],
                               ["--training.dataset", "preferences", "--training.loss", "dpo"])):
            self.chat(records, "--longest", "65")
            told = self.run_lockstep("train", "job.toml", *keys, "--verify", "--parallelism.data_parallel_shard_degree", "2",
                                     "--parallelism.tensor_parallel_degree", "2")
            self.assertIn("0 bits differ", told)

    def test_what_is_wrong_with_conversations_is_named(self):
        refusals = [
            ({"text": "a"}, "chat.jsonl:1: is no conversation; it has text."),
            ({"messages": []}, 'chat.jsonl:1: "messages" is no list of messages.'),
            ({"messages": [{"role": "me", "content": "a"}]}, 'chat.jsonl:1: "messages"[0]: role me is not one of'),
            ({"messages": [{"role": "user", "content": "a"}]}, "chat.jsonl:1: has no message of the assistant"),
            ({"prompt": "P", "chosen": "C", "rejected": "C"}, '"chosen" has no message of the assistant that the other'),
            ({"prompt": "P\ud800", "completion": "C"}, "chat.jsonl:1: character 1 is half of a surrogate pair, no text."),
            ({"prompt": "", "completion": "C"}, "has no token to learn behind the first"),
        ]
        for record, message in refusals:
            self.assertIn(message, self.chat([record], template="plain", code=2))
            self.assertFalse(list(self.path.glob("out*")))
        pairs = {"prompt": "P", "chosen": "C", "rejected": "R"}
        self.assertIn("chat.jsonl:2: conversations and preferences go into files of their own",
                      self.chat([pairs, {"prompt": "P", "completion": "C"}], code=2))
        self.assertIn("--longest is of conversations", self.prepare(self.lines(), "--tokenizer", "bytes", "--longest", "9", code=2))
        self.assertIn("no conversation in it of at most 3 tokens", self.chat([pairs], "--longest", "3", code=2))

    def test_packed_conversations(self):
        record = json.dumps({"messages": [{"role": "user", "content": "U"}, {"role": "assistant", "content": "A"}]}) + "\n"
        packed = gzip.compress(record.encode())
        self.prepare(self.write("chat.jsonl.gz", packed), "--chat", "plain", "--tokenizer", "bytes")
        self.assertEqual(len(self.documents()), 1)
        self.write("half.jsonl.gz", packed[:-9])
        self.assertIn("half.jsonl.gz: is damaged", self.prepare("half.jsonl.gz", "--chat", "plain", "--tokenizer", "bytes",
                                                                code=2))
        self.assertIn("--begin-of-document: the template of --chat says how turns begin and end.",
                      self.prepare("half.jsonl.gz", "--chat", "plain", "--tokenizer", "bytes", "--begin-of-document", "1",
                                   code=2))

    @unittest.skipUnless(has("tokenizers"), "tokenizers is not installed")
    def test_hugging_face(self):
        import tokenizers
        from tokenizers import models, pre_tokenizers, trainers

        own = tokenizers.Tokenizer(models.BPE())
        own.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        own.train_from_iterator(TEXTS, trainers.BpeTrainer(
            vocab_size=300, special_tokens=["<end>"], initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
            show_progress=False))
        own.enable_truncation(2)  # is undone
        own.save(str(self.path / "tokenizer.json"))
        own.no_truncation()
        self.prepare(self.lines(), "--tokenizer", "tokenizer.json", "--end-of-document", "<end>")
        self.assertEqual(self.documents(), [own.encode(text).ids + [0] for text in TEXTS])
        self.assertEqual(self.sidecar()["tokenizer"], "tokenizer.json")
        self.write("a.txt", "a <end> b")
        self.prepare("a.txt", "--tokenizer", "tokenizer.json")
        self.assertNotIn(0, self.documents()[0], "a special token inside a text is text")

    @unittest.skipUnless(has("tiktoken"), "tiktoken is not installed")
    def test_tiktoken(self):
        ranks = {bytes([i]): i for i in range(256)} | {b"th": 256, b"the": 257}
        self.write("r.tiktoken", "".join(f"{base64.b64encode(k).decode()} {v}\n" for k, v in ranks.items()))
        self.prepare(self.lines(), "--tokenizer", "r.tiktoken", "--pattern", "gpt2")
        self.assertEqual(self.documents()[3], [257, 32, 257, 32, 257])
        self.assertEqual(self.sidecar()["vocabulary"], 258)
        self.assertIn("--pattern says how it cuts text", self.prepare("in.jsonl", "--tokenizer", "r.tiktoken", code=2))

    @unittest.skipUnless(has("sentencepiece"), "sentencepiece is not installed")
    def test_sentencepiece(self):
        import sentencepiece

        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(TEXTS), model_prefix=str(self.path / "sp"), vocab_size=29, minloglevel=2)
        own = sentencepiece.SentencePieceProcessor(model_file=str(self.path / "sp.model"))
        self.prepare(self.lines(), "--tokenizer", "sp.model", "--end-of-document", "</s>")
        self.assertEqual(self.documents(), [own.encode(text) + [own.eos_id()] for text in TEXTS])

    @unittest.skipUnless(has("pyarrow"), "pyarrow is not installed")
    def test_parquet(self):
        import pyarrow
        from pyarrow import parquet

        parquet.write_table(pyarrow.table({"body": TEXTS, "n": list(range(len(TEXTS)))}), self.path / "a.parquet")
        self.prepare("*.parquet", "--tokenizer", "bytes", "--field", "body")
        self.assertEqual(self.documents(), [list(text.encode()) for text in TEXTS])
        self.assertIn('has no column "text" (it has body, n)', self.prepare("*.parquet", "--tokenizer", "bytes", code=2))
        self.write("b.parquet", b"PAR1 and no more")
        self.assertIn("is not a Parquet file", self.prepare("b.parquet", "--tokenizer", "bytes", code=2))

    def test_adopted_files_of_others(self):
        ids = [5, 6, 9, 7, 9, 9, 8]
        header = array.array("i", [20240520, 1, len(ids)] + [0] * 253).tobytes()
        self.write("llmc.bin", header + array.array("H", ids).tobytes())
        self.write("wide.bin", array.array("I", ids).tobytes())
        adopt = ["--vocabulary", "10", "--end-of-document", "9", "--output", self.path / "out"]
        self.run_lockstep("data", "adopt", "llmc.bin", *adopt)
        self.assertEqual(self.documents(), [[5, 6, 9], [7, 9], [9], [8]])
        self.run_lockstep("data", "adopt", "wide.bin", "--dtype", "uint32", *adopt)
        self.assertEqual(self.documents("I"), [[5, 6, 9], [7, 9], [9], [8]])
        self.assertIn("Say it with", self.run_lockstep("data", "adopt", "wide.bin", *adopt, code=2))
        told = self.run_lockstep("data", "adopt", "llmc.bin", "--vocabulary", "9", "--output", "o2", code=2)
        self.assertIn("token 2 is id 9, outside the vocabulary of 9", told)
        self.assertFalse(list(self.path.glob("o2*")))

    def test_what_is_wrong_is_named(self):
        self.write("bad.txt", b"ab\xff")
        self.write("bad.jsonl", '{"text": "a"}\n{"tex": "b"}\n')
        self.write("worse.jsonl", '{"text": 1}\n')
        self.write("no.jsonl", "{]\n")
        self.write("empty.txt", "")
        refusals = {
            ("bad.txt",): "bad.txt: is not UTF-8 at byte 2.",
            ("bad.jsonl",): 'bad.jsonl:2: has no "text" (it has tex); --field names the one that is text.',
            ("worse.jsonl",): 'worse.jsonl:1: "text" is int, not text.',
            ("no.jsonl",): "no.jsonl:1: is not JSON",
            ("empty.txt",): "empty.txt: there is no text in it.",
            ("none.txt",): "none.txt: there is no such file.",
            ("*.tok",): "*.tok: there is no such file.",
            ("bad.txt", "bad.txt"): "bad.txt: is named twice",
        }
        for inputs, message in refusals.items():
            self.assertIn("lockstep: " + message, self.prepare(*inputs, "--tokenizer", "bytes", code=2))
            self.assertFalse(list(self.path.glob("out*")), inputs)
        self.assertIn("--tokenizer is \"bytes\" or a file", self.prepare("bad.txt", "--tokenizer", "none.json", code=2))

    def test_damage_is_found(self):
        self.prepare(self.lines(), "--tokenizer", "bytes")
        data = bytearray((self.path / "out.bin").read_bytes())
        data[10] ^= 1
        (self.path / "out.bin").write_bytes(data)
        self.assertIn("is not the file that its sidecar is of", self.run_lockstep("data", "inspect", "out.bin", code=2))


if __name__ == "__main__":
    missing = [name for name in ("tokenizers", "tiktoken", "sentencepiece", "pyarrow") if not has(name)]
    if missing:
        print(f"NOT CHECKED: tokens by {', '.join(missing)} (run tools/setup data)")
    unittest.main()
