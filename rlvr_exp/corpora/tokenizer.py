"""The embedded models' own tokenizers: byte-level BPE whose merges stay inside the pieces that a pattern cuts.

GRID makes every grid cell one token: digits are split from all other text, together with the newline that ends a grid's
row, so that a grid of h x w cells is h * w tokens; all other text is merged freely, so that idioms become few tokens.
CODE keeps a name, with the blank before it, apart from what stands around it, so that a name met in the prompt is the
same token wherever it is used; digits stand alone, and blanks and signs between names are merged freely.
"""

from collections.abc import Iterable

from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast

PAD, EOS = "<pad>", "<eos>"
VOCABULARY = 1024
GRID = r"\d\n?"
CODE = r" ?[A-Za-z_]\w*|\d"


def train_tokenizer(texts: Iterable[str], pieces: str, vocabulary: int = VOCABULARY) -> PreTrainedTokenizerFast:
    """Learn merges from `texts`, none across the borders of what `pieces` matches.

    Any text can be encoded and comes back unchanged.
    """
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(pieces), "isolated"),
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
