"""What people and the assistant say in a demo store: four languages, a handful of themes.

Sentences are patterns with a `{thing}` and a `{place}` to fill in; the word lists are our own, and
made to be readable: someone who opens a transcript of the demo should see what it is about.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from state_ledger.demo.prose import chinese, english, japanese, korean
from state_ledger.demo.prose.language import Language, Theme

LANGUAGES: dict[str, Language] = {
    language.code: language
    for language in (english.LANGUAGE, korean.LANGUAGE, chinese.LANGUAGE, japanese.LANGUAGE)
}
SHARES = {"en": 58, "ko": 16, "zh": 13, "ja": 13}
"""How often each language is spoken, in hundredths of the conversations."""

_DRAWN = 240
_THINGS = 3


@dataclass(frozen=True)
class Topic:
    """What a conversation is about: a theme in a language, and which of its places and things.

    Equal numbers are the same place and things, so that a transcript keeps to its subject.
    """

    language: str
    theme: str
    number: int


@dataclass(frozen=True)
class Voice:
    """The sentences on one topic, filled in once and then drawn from."""

    space: str
    titles: tuple[str, ...]
    questions: tuple[str, ...]
    answers: tuple[str, ...]
    steps: tuple[str, ...]
    summary: str

    def question(self, rng: Random) -> str:
        """What a user asks: one to three sentences."""
        return self.space.join(rng.sample(self.questions, rng.choice((1, 1, 2, 3))))

    def answer(self, rng: Random, sentences: int) -> str:
        """What the assistant says: Markdown with paragraphs, in longer answers a heading and a list."""
        said = rng.sample(self.answers, min(sentences, len(self.answers)))
        paragraphs = [self.space.join(said[at : at + 3]) for at in range(0, len(said), 3)]
        if sentences > 4:
            first, *others = rng.sample(self.steps, rng.randint(3, min(6, len(self.steps))))
            paragraphs.insert(1, "\n".join([f"- **{first}**", *(f"- {step}" for step in others)]))
        if sentences > 8:
            paragraphs.insert(1, f"## {rng.choice(self.titles)}")
        return "\n\n".join(paragraphs)

    def thought(self, rng: Random) -> str:
        """A stretch of reasoning: plain sentences."""
        return self.space.join(rng.sample(self.answers, rng.randint(1, 4)))


class Voices:
    """Every voice of a seed, each made when it is first asked for."""

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._made: dict[Topic, Voice] = {}

    def voice(self, topic: Topic) -> Voice:
        """The voice on a topic. Raises KeyError for an unknown language or theme."""
        if topic not in self._made:
            # A random stream of its own, so that it does not matter who asks first.
            rng = Random(f"{self._seed}/voice/{topic.language}/{topic.theme}/{topic.number}")
            language = LANGUAGES[topic.language]
            self._made[topic] = _fill(language, language.themes[topic.theme], rng)
        return self._made[topic]


def draw_topic(rng: Random, language: str | None = None, theme: str | None = None) -> Topic:
    """A topic by chance, in the language and on the theme given if any."""
    return Topic(
        language or rng.choices(tuple(SHARES), tuple(SHARES.values()))[0],
        theme or rng.choice(tuple(english.LANGUAGE.themes)),
        rng.randrange(12),
    )


def _fill(language: Language, theme: Theme, rng: Random) -> Voice:
    place, things = rng.choice(theme.places), rng.sample(theme.things, _THINGS)

    def pool(patterns: tuple[str, ...]) -> tuple[str, ...]:
        made = (rng.choice(patterns).format(thing=rng.choice(things), place=place) for _ in range(_DRAWN))
        # A capital at the start, without lowering the rest as capitalize() would.
        return tuple(dict.fromkeys(text[:1].upper() + text[1:] for text in made))

    return Voice(
        space=language.space,
        titles=pool(theme.titles + language.titles),
        questions=pool(theme.questions + language.questions),
        answers=pool(theme.answers + language.answers),
        steps=pool(language.steps),
        summary=language.summary,
    )
