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

_POOL = 320


@dataclass(frozen=True)
class Voice:
    """The sentences of one language on one theme, filled in once and then drawn from."""

    space: str
    titles: tuple[str, ...]
    questions: tuple[str, ...]
    answers: tuple[str, ...]
    steps: tuple[str, ...]
    summary: str

    def question(self, rng: Random) -> str:
        """What a user asks: one to three sentences."""
        return self.space.join(rng.choices(self.questions, k=rng.choice((1, 1, 2, 3))))

    def answer(self, rng: Random, sentences: int) -> str:
        """What the assistant says: Markdown with paragraphs, and a list in longer answers."""
        first = self.space.join(rng.choices(self.answers, k=max(1, sentences // 2)))
        if sentences < 4:
            return first
        steps = "\n".join(f"- **{step}**" if i == 0 else f"- {step}" for i, step in
                          enumerate(rng.choices(self.steps, k=min(6, sentences // 2))))
        return f"{first}\n\n{steps}\n\n{rng.choice(self.answers)}"

    def thought(self, rng: Random) -> str:
        """A stretch of reasoning: plain sentences."""
        return self.space.join(rng.choices(self.answers, k=rng.randint(1, 4)))


class Voices:
    """Every voice of a seed; `voice("ko", "travel")` makes it at the first call."""

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._made: dict[tuple[str, str], Voice] = {}

    def voice(self, language: str, theme: str) -> Voice:
        """The voice of a language code and a theme's name. Raises KeyError for unknown ones."""
        key = (language, theme)
        if key not in self._made:
            # A random stream of its own, so that it does not matter who asks first.
            rng = Random(f"{self._seed}/voice/{language}/{theme}")
            self._made[key] = _fill(LANGUAGES[language], LANGUAGES[language].themes[theme], rng)
        return self._made[key]


def theme_names() -> tuple[str, ...]:
    """Names of the themes, the same in every language."""
    return tuple(english.LANGUAGE.themes)


def _fill(language: Language, theme: Theme, rng: Random) -> Voice:
    def pool(patterns: tuple[str, ...], size: int = _POOL) -> tuple[str, ...]:
        made = (
            rng.choice(patterns).format(thing=rng.choice(theme.things), place=rng.choice(theme.places))
            for _ in range(size)
        )
        # Capitals at the start of a sentence, without lowering the rest as capitalize() would.
        return tuple(dict.fromkeys(text[:1].upper() + text[1:] for text in made))

    return Voice(
        space=language.space,
        titles=pool(theme.titles + language.titles),
        questions=pool(theme.questions + language.questions),
        answers=pool(theme.answers + language.answers),
        steps=pool(language.steps, 80),
        summary=language.summary,
    )
