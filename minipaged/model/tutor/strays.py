"""Questions that nobody taught the tutor, so that it learns to say that it does not know.

A model that has only ever seen questions with an answer makes one up for every other question. So
each epoch brings some strays, new ones every time, all with the same refusal: two halves of known
questions put together, the words of one in another order, known terms asked about in a new way,
and ordinary things that are not the subject at all.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

from minipaged.model.tutor.corpus import REFUSAL, Pair, normalise

THINGS = (
    "coffee, bread, cheese, a guitar, a piano, football, chess, a bicycle, a car, a train, an "
    "engine, a bridge, a castle, the moon, the sun, a star, a volcano, an ocean, a river, a "
    "forest, a garden, a rose, an apple, a banana, a horse, a cat, a dog, a bird, a whale, the "
    "human heart, a vaccine, a headache, sleep, dreams, love, money, a bank, a tax, an election, "
    "a law, a poem, a novel, a film, a song, a painting, Paris, Rome, Tokyo, Brazil, Egypt, "
    "history, physics, chemistry, a prime number, an integral, a triangle, Java, Rust, a "
    "compiler, a web server, a database, an index, a regular expression, a linked list, "
    "quicksort, a neural network, backpropagation, gradient descent, a diffusion model, a "
    "chatbot, blockchain, a phone, a robot"
).split(", ")
ABOUT_THINGS = (
    "What is {}?|Tell me about {}.|How does {} work?|Why is {} important?|Who invented {}?|"
    "What is the best {}?|How do I make {}?|Where can I find {}?|When was {} first seen?|"
    "How much does {} cost?|Explain {} to a child.|Do you like {}?|How large is {}?|"
    "Write a story about {}.|What is the opposite of {}?|Is {} dangerous?|Describe {}."
).split("|")
ABOUT_TERMS = (
    "Who invented {}?|What is the history of {}?|Write code for {}.|Is {} patented?|"
    "How is {} implemented in Rust?|What comes after {}?|Which paper describes {}?|"
    "Is {} better than coffee?|What is wrong with {}?|Who uses {}?|Draw {}.|"
    "How many lines of code is {}?|Does {} work on a phone?|Translate {} into French.|"
    "What is the difference between {} and {}?|How are {} and {} related?"
).split("|")
CHINESE = "足球,音乐,咖啡,月亮,北京,历史,爱情,股票,手机,电影,数据库,编译器,神经网络,猫,汽车".split(
    ","
)
ABOUT_CHINESE = (
    "什么是{}？,{}是谁发明的？,{}多少钱？,介绍一下{}。,怎么学{}？,{}有什么用？,我喜欢{}。".split(
        ","
    )
)


def strays(pairs: Sequence[Pair], count: int, rng: random.Random) -> list[Pair]:
    """`count` questions that are none of `pairs`, each with the first refusal in its language.

    None at all if `pairs` hold no English refusal.
    """
    known = {normalise(pair.question) for pair in pairs}
    english = [pair for pair in pairs if pair.question.isascii()]
    chinese = [pair for pair in pairs if not pair.question.isascii()]
    if _refusal(english) is None:
        return []
    if _refusal(chinese) is None:
        chinese = english
    found: list[Pair] = []
    while len(found) < count:
        own = chinese if rng.random() < 0.12 else english
        question = _english(own, rng) if own is english else _chinese(own, rng)
        if normalise(question) not in known:
            found.append(Pair(question, _refusal(own) or "", REFUSAL))
    return found


def _refusal(pairs: Sequence[Pair]) -> str | None:
    return next((pair.answer for pair in pairs if pair.topic == REFUSAL), None)


def _english(pairs: Sequence[Pair], rng: random.Random) -> str:
    kind = rng.randrange(4)
    if kind == 0:
        return rng.choice(ABOUT_THINGS).format(rng.choice(THINGS))
    if kind == 1:
        return rng.choice(ABOUT_TERMS).format(rng.choice(pairs).topic, rng.choice(pairs).topic)
    one, other = (rng.choice(pairs).question.split() for _ in range(2))
    if kind == 2:
        rng.shuffle(one)
        return " ".join(one)
    return " ".join([*one[: rng.randint(1, len(one))], *other[rng.randrange(len(other)) :]])


def _chinese(pairs: Sequence[Pair], rng: random.Random) -> str:
    if rng.random() < 0.5:
        return rng.choice(ABOUT_CHINESE).format(rng.choice(CHINESE))
    one, other = (rng.choice(pairs).question for _ in range(2))
    return one[: rng.randint(1, len(one) - 1)] + other[rng.randrange(1, len(other)) :]
