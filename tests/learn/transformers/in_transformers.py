"""An exported model and tokenizer, read by the libraries of Hugging Face.

  in_transformers.py MODEL LOSSES TEXTS TOKENS

MODEL is the folder of `shoal export --format hf`, LOSSES the output of albert_losses, and TOKENS the output of
`shoal tokenizer encode` for the lines of TEXTS. The losses must agree to 1e-5 of themselves, and the tokens must be
equal. A machine without torch and transformers skips the test.
"""

import json
import sys

try:
    import torch
    import transformers
except ImportError as absent:
    sys.exit(print(f"SKIPPED: {absent}"))

folder, losses, texts, tokens = sys.argv[1:]
model, said = transformers.AutoModelForPreTraining.from_pretrained(folder, output_loading_info=True)
model.eval()
# The published run's transformers had this value in the head, and Shoal has. Version 5 takes layer_norm_eps, 1e-12.
model.predictions.LayerNorm.eps = 1e-5
for kind, names in said.items():
    assert not names, f"{kind}: {names}"
print(f"transformers {transformers.__version__}: {type(model).__name__}, {model.num_parameters()} parameters")

worst = 0
lines = [json.loads(line) for line in open(losses)]
for one in lines:
    labels = [-100 if label is None else label for label in one["labels"]]
    segments = [int(place >= one["first"]) for place in range(len(labels))]
    with torch.no_grad():
        got = model(input_ids=torch.tensor([one["tokens"]]), token_type_ids=torch.tensor([segments]),
                    labels=torch.tensor([labels]), sentence_order_label=torch.tensor([one["order"]]))
    worst = max(worst, abs(got.loss.item() / one["loss"] - 1))
print(f"{len(lines)} losses, {lines[0]['loss']:.4f} and so on: relative differences of at most {worst:.1e}")
assert worst < 1e-5

tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
count = 0
for line, wanted in zip(open(texts, encoding="utf-8"), open(tokens), strict=True):
    got = tokenizer(line.rstrip("\n"), add_special_tokens=False)["input_ids"]
    assert got == [int(word) for word in wanted.split()], (line, got, wanted)
    count += len(got)
print(f"{type(tokenizer).__name__}: {count} tokens are equal")
assert count > 0

masked = tokenizer.mask_token
assert masked, "the tokenizer names no token that masks"
filled = transformers.pipeline("fill-mask", model=folder, tokenizer=tokenizer)(f"the {masked} of the")
print("fill-mask:", [one["token_str"] for one in filled])
