"""The embedded model's own tokenizer: byte-level BPE in which every grid cell is one token.

Digits are split from all other text, together with the newline that ends a grid's row, so that a grid of h x w cells is
h * w tokens. All other text is merged freely, so that the idioms of the corpus become few tokens.
"""

from collections.abc import Iterable

from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast

PAD, EOS = "<pad>", "<eos>"
VOCABULARY = 1024


def train_tokenizer(texts: Iterable[str], vocabulary: int = VOCABULARY) -> PreTrainedTokenizerFast:
    """Learn merges from `texts`; any text can be encoded and comes back unchanged."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(r"\d\n?"), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocabulary,
        special_tokens=[PAD, EOS],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, pad_token=PAD, eos_token=EOS, clean_up_tokenization_spaces=False
    )
