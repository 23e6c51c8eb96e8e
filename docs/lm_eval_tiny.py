"""A benchmark and tiny models for docs/tutorial-lm-eval.md, and full evaluations of the models.

The benchmark is a group of two tasks of sums, with four options each. A model is a two-layer GPT-2
that has learnt the answers to some of the questions by heart, so models differ in what they know
as well as in how much. Nothing is downloaded. Run it where lm-evaluation-harness is installed:

    python lm_eval_tiny.py
"""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import torch
from lm_eval import simple_evaluate
from lm_eval.loggers import EvaluationTracker
from lm_eval.tasks import TaskManager
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import WhitespaceSplit
from transformers import GPT2Config, GPT2LMHeadModel, PreTrainedTokenizerFast

N_QUESTIONS = {"loop_add": 90, "loop_take": 70}
N_MODELS = 12
N_STEPS = 250
END, UNKNOWN = "<end>", "<unknown>"
TASK = """task: {name}
dataset_path: json
dataset_kwargs:
  data_files:
    test: {data}
test_split: test
output_type: multiple_choice
doc_to_text: "Question: {{{{question}}}} Answer:"
doc_to_choice: choices
doc_to_target: answer
metric_list:
  - metric: acc
    aggregation: mean
    higher_is_better: true
metadata:
  version: 1.0
"""
GROUP = """group: loop
task:
  - loop_add
  - loop_take
aggregate_metric_list:
  - metric: acc
    aggregation: mean
    weight_by_size: true
metadata:
  version: 1.0
"""


def make_questions(name: str, dice: random.Random) -> list[dict[str, Any]]:
    """Return distinct questions of one task."""
    sign = "+" if name == "loop_add" else "-"
    pairs = [(a, b) for a in range(10, 30) for b in range(10)]
    questions = []
    for a, b in dice.sample(pairs, N_QUESTIONS[name]):
        right = a + b if sign == "+" else a - b
        options = dice.sample([right + d for d in (-3, -2, -1, 1, 2, 3)], 3)
        options.insert(dice.randrange(4), right)
        questions.append(
            {
                "question": f"{a} {sign} {b} =",
                "choices": [str(one) for one in options],
                "answer": options.index(right),
            }
        )
    return questions


def write_tasks(folder: Path) -> list[dict[str, Any]]:
    """Write the two tasks and their group; returns all questions."""
    dice = random.Random(0)
    (folder / "tasks").mkdir(parents=True)
    everything = []
    for name in N_QUESTIONS:
        questions = make_questions(name, dice)
        data = folder / f"{name}.jsonl"
        data.write_text("".join(json.dumps(one) + "\n" for one in questions))
        (folder / "tasks" / f"{name}.yaml").write_text(TASK.format(name=name, data=data))
        everything += questions
    (folder / "tasks" / "loop.yaml").write_text(GROUP)
    return everything


def make_tokenizer() -> PreTrainedTokenizerFast:
    """Return a tokenizer of the few words that occur."""
    words = [END, UNKNOWN, "Question:", "Answer:", "+", "-", "="]
    words += [str(number) for number in range(-5, 60)]
    tokenizer = Tokenizer(WordLevel({word: i for i, word in enumerate(words)}, unk_token=UNKNOWN))
    tokenizer.pre_tokenizer = WhitespaceSplit()
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        eos_token=END,
        bos_token=END,
        pad_token=END,
        unk_token=UNKNOWN,
    )


def make_model(
    folder: Path, tokenizer: PreTrainedTokenizerFast, known: list[dict[str, Any]], seed: int
) -> None:
    """Train one model on the answers that it is to know, and save it."""
    torch.manual_seed(seed)
    model = GPT2LMHeadModel(
        GPT2Config(
            vocab_size=len(tokenizer),
            n_positions=32,
            n_embd=48,
            n_layer=2,
            n_head=2,
            bos_token_id=0,
            eos_token_id=0,
            resid_pdrop=0,
            embd_pdrop=0,
            attn_pdrop=0,
        )
    )
    texts = [
        f"Question: {one['question']} Answer: {one['choices'][one['answer']]}" for one in known
    ]
    if texts:
        rows = torch.tensor([tokenizer(text)["input_ids"] for text in texts])
        optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
        for _ in range(N_STEPS):
            optimizer.zero_grad()
            # Only the answer is learnt; the questions are drawn by chance.
            answers = model(rows[:, :-1]).logits[:, -1]
            torch.nn.functional.cross_entropy(answers, rows[:, -1]).backward()
            optimizer.step()
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)


def main(folder: Path) -> None:
    """Make the reference models and a new one, and evaluate the reference models in full."""
    torch.set_num_threads(1)
    questions = write_tasks(folder)
    tokenizer = make_tokenizer()
    shares = {f"m{i:02d}": i / N_MODELS for i in range(N_MODELS)} | {"new": 0.6}
    for seed, (name, share) in enumerate(shares.items()):
        known = random.Random(seed).sample(questions, int(share * len(questions)))
        make_model(folder / "models" / name, tokenizer, known, seed)
    # The command line does the same, but reads thousands of other tasks first, each time.
    tasks = TaskManager(include_path="tasks", include_defaults=False)
    for name in shares:
        if name != "new":
            evaluate(name, tasks)


def evaluate(name: str, tasks: TaskManager) -> None:
    """Evaluate one model in full and log its samples."""
    tracker = EvaluationTracker(output_path="full")
    results = simple_evaluate(
        model="hf",
        model_args=f"pretrained=models/{name}",
        tasks=["loop"],
        task_manager=tasks,
        batch_size=64,
        device="cpu",
        log_samples=True,
        evaluation_tracker=tracker,
    )
    samples = results.pop("samples")
    tracker.save_results_aggregated(results=results, samples=samples)
    for task in results["configs"]:
        tracker.save_results_samples(task_name=task, samples=samples[task])


if __name__ == "__main__":
    main(Path.cwd())
