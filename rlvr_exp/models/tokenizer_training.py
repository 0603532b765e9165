"""Tokenizers made from texts, as plain fast tokenizers: equal texts give an equal one, and any text without the names of
special tokens comes back unchanged from its tokens.

GRID makes every grid cell one token: digits are split from all other text, together with the newline that ends a grid's
row, so that a grid of h x w cells is h * w tokens; all other text is merged freely, so that idioms become few tokens.
CODE keeps a name, with the blank before it, apart from what stands around it, so that a name met in the prompt is the
same token wherever it is used; digits stand alone, and blanks and signs between names are merged freely.
"""

from collections.abc import Iterable, Iterator

from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast

from rlvr_exp.config.architecture import VOCABULARY, Scratch
from rlvr_exp.tasks.base import Domain

PAD, EOS = "<pad>", "<eos>"
GRID = r"\d\n?"
CODE = r" ?[A-Za-z_]\w*|\d"
GPT2 = r"'(?:s|t|re|ve|m|ll|d)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
"""The pieces of GPT-2 (Radford et al. 2019), as in the library's ByteLevel."""
CELLS = f"{GRID}|{GPT2}"
"""Those, but a grid cell is a piece of its own."""
BYTES = [f"<0x{byte:02X}>" for byte in range(256)]
"""The names that the library gives the bytes of characters without a token of their own."""


def training_texts(domain: Domain) -> Iterator[str]:
    """Prompts and golds of the train split."""
    for task in domain.splits()["train"]:
        for shown in domain.demonstrations(task):
            yield domain.task_prompt(shown)
            if gold := domain.gold_completion(shown):
                yield gold


def build_tokenizer(options: Scratch, texts: Iterable[str]) -> PreTrainedTokenizerFast:
    """The tokenizer that `model.scratch.tokenizer` names."""
    if options.tokenizer == "characters":
        return _characters(texts)
    if options.tokenizer == "bytes":
        return _bytes()
    return train_tokenizer(texts, CELLS if options.tokenizer == "grid" else GPT2, options.vocabulary_size)


def train_tokenizer(texts: Iterable[str], pieces: str, vocabulary: int = VOCABULARY) -> PreTrainedTokenizerFast:
    """Byte-level BPE, whose merges cross no border of what `pieces` matches."""
    tokenizer = Tokenizer(models.BPE())
    spelled = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(pieces), "isolated"), spelled])
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocabulary,
        special_tokens=[PAD, EOS],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    return _fast(tokenizer)


def _bytes() -> PreTrainedTokenizerFast:
    names = [PAD, EOS, *sorted(pre_tokenizers.ByteLevel.alphabet())]
    tokenizer = Tokenizer(models.BPE({name: number for number, name in enumerate(names)}, []))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.decoder = decoders.ByteLevel()
    return _fast(tokenizer)


def _characters(texts: Iterable[str]) -> PreTrainedTokenizerFast:
    """A token a character that the texts have; of any other its bytes."""
    names = [PAD, EOS, *BYTES, *sorted({character for text in texts for character in text})]
    vocabulary = {name: number for number, name in enumerate(names)}
    tokenizer = Tokenizer(models.BPE(vocabulary, [], byte_fallback=True))
    tokenizer.decoder = decoders.Sequence([decoders.ByteFallback(), decoders.Fuse()])
    return _fast(tokenizer)


def _fast(tokenizer: Tokenizer) -> PreTrainedTokenizerFast:
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, pad_token=PAD, eos_token=EOS, clean_up_tokenization_spaces=False
    )
