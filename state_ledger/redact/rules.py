"""What a secret looks like: one rule per kind, each behind a word that has to occur first.

Providers give their keys a prefix of their own, which makes a rule exact. What has no prefix
(passwords, tokens in `name = value`) is known by its name, and its value has to look like one that a
machine or a person made up: not a variable, a call, a placeholder or a word of prose.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

from state_ledger.patterns import Pattern

_END = r"(?![A-Za-z0-9_])"


@dataclass(frozen=True)
class Rule:
    """One kind of secret.

    kind: as the placeholder names it. pattern: the group `secret` is what is replaced, the whole match
    where there is no such group. words: texts of which one has to occur, in lower case, or the pattern
    is not tried. check: whether a match is one, given its secret. whole: whether a match inside a word
    is none. lower: whether the pattern is for the text in lower case. before: what the text ahead of the
    match has to end with.

    Patterns begin with a literal wherever they can: that is what makes looking for them cheap.
    """

    kind: str
    pattern: Pattern
    words: tuple[str, ...]
    check: Callable[[str], bool] | None = None
    whole: bool = False
    lower: bool = False
    before: re.Pattern[str] | None = None


def _rule(kind: str, pattern: str, *words: str, check: Callable[[str], bool] | None = None, flags: int = 0) -> Rule:
    return Rule(kind, Pattern(pattern, flags), words, check)


def _prefixed(kind: str, body: str, *words: str) -> Rule:
    return Rule(kind, Pattern(body + _END), words, _not_a_pattern, whole=True)


def _not_a_pattern(secret: str) -> bool:
    """Not `sk-xxxxxxxxxxxx` or `AKIA................`, which documents show for a key."""
    body = re.sub(r"[^A-Za-z0-9]", "", secret)[4:]
    return len(set(body.lower())) >= 5 and "xxxx" not in body.lower() and "example" not in body.lower()


def _made_up(secret: str) -> bool:
    """Whether a value in `name = value` can be a password or token rather than code, a word or a gap to fill."""
    value = secret.strip("\"'`")
    lower = value.lower()
    if len(value) < 6 or not value.isprintable():
        return False
    if _CODE.search(value) or _FILLER.search(lower) or len(set(lower)) < 4:
        return False
    if value.isalpha() and (value.islower() or value.istitle() or value.isupper()):
        return False  # a word: "password: required"
    if _IDENTIFIER.fullmatch(value) and not any(c.isdigit() for c in value):
        return False  # a name: api_key=settings_value, token: accessToken
    if _WORDS_AND_DASHES.fullmatch(lower):
        return False
    if _NUMBER.fullmatch(value):
        return False
    if _DATE_OR_VERSION.fullmatch(value):
        return False
    return any(c.isdigit() for c in value) or _entropy(value) >= 3.0


def _in_url(secret: str) -> bool:
    lower = secret.lower()
    return not (_FILLER.search(lower) or _CODE.search(secret) or lower in _NO_PASSWORDS or set(secret) <= set("*x.…"))


def _entropy(text: str) -> float:
    """Bits per character."""
    count = Counter(text)
    return -sum(n / len(text) * math.log2(n / len(text)) for n in count.values())


_CODE = re.compile(
    r"[(){}\[\]<>]|^\$|\.\.\.|…|->|=>|::|^\.|^[a-z_]+(?:\.[a-z_]+)+$|^%|\\u|^/|^https?:|^self\."
)
_FILLER = re.compile(
    r"x{4,}|\*{3,}|example|your[-_ ]|my[-_]|change[-_ ]?me|placeholder|redacted|dummy|insert|replace|todo|fixme|"
    r"^(?:none|null|true|false|undefined|required|optional|string|secret|password|passwd|token)\b|"
    r"^(?:test|fake|sample)[-_]|^<|1234567890$|^abc123$"
)
_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_WORDS_AND_DASHES = re.compile(r"[a-z]+(?:[-_./][a-z]+)+")
_NUMBER = re.compile(r"[+-]?[\d.,_]+%?(?:[a-z]{1,2})?")
_DATE_OR_VERSION = re.compile(r"v?\d{1,4}(?:[-./:]\d{1,4})+(?:[T ][\d:.]+Z?)?")
_NO_PASSWORDS = frozenset({"password", "pass", "passwd", "pwd", "secret", "token", "pw", "port", "user"})

# `name = value`, `"name": "value"`, `\"name\": \"value\"`, `name is value`; the name may end a longer one.
_AFTER_NAME = (
    r"(?:\\{0,9}[\"'`*]){0,3}\s{0,3}(?::=|=>|=|:|：|\bis\b|\bto\b)\s{0,3}(?:\*{1,2})?\s{0,3}(?:\*{0,2}\\{0,9}[\"'`]|\*\*)?"
)
_VALUE = r"(?P<secret>[^\s\"'`,;\\<>|]{6,400})"
_KINDS_OF_KEYS = re.compile(
    r"(?:api|access|secret|signing|encryption|account|shared|master|private|service|auth|deploy|license)[-_ ]?$"
)


def _named(kind: str, name: str, word: str, before: re.Pattern[str] | None = None) -> Rule:
    pattern = Pattern(name + _AFTER_NAME + _VALUE)
    return Rule(kind, pattern, (word,), _made_up, lower=True, before=before)


RULES: tuple[Rule, ...] = (
    _rule(
        "private key",
        r"-----BEGIN (?:[A-Z0-9]{1,20} ){0,3}PRIVATE KEY(?: BLOCK)?-----(?:[A-Za-z0-9+/=\s:,.]|\\[nr]|-(?!-))*"
        r"(?:-----END (?:[A-Z0-9]{1,20} ){0,3}PRIVATE KEY(?: BLOCK)?-----)?",
        "private key",
    ),
    _rule(
        "private key",
        r"PuTTY-User-Key-File-\d:.{1,8000}?Private-MAC: ?[0-9a-f]+",
        "putty-user-key-file",
        flags=re.DOTALL,
    ),
    _prefixed("age key", r"AGE-SECRET-KEY-1[02-9A-Z]{58}", "age-secret-key-"),
    _prefixed("anthropic key", r"sk-ant-[A-Za-z0-9_-]{20,}", "sk-ant-"),
    _prefixed("openrouter key", r"sk-or-(?:v1-)?[A-Za-z0-9_-]{20,}", "sk-or-"),
    _prefixed("openai key", r"sk-(?:proj|svcacct|admin|None)-[A-Za-z0-9_-]{20,}", "sk-"),
    _prefixed("openai key", r"sk-[A-Za-z0-9]{20,}", "sk-"),
    _prefixed("stripe key", r"(?:[sr]k|whsec)_(?:live|test)_[A-Za-z0-9]{16,}", "k_live_", "k_test_"),
    _prefixed("stripe key", r"whsec_[A-Za-z0-9+/=]{24,}", "whsec_"),
    _prefixed("google key", r"AIza[A-Za-z0-9_-]{35}", "aiza"),
    _prefixed("google token", r"ya29\.[A-Za-z0-9_-]{20,}", "ya29."),
    _prefixed("google secret", r"GOCSPX-[A-Za-z0-9_-]{20,}", "gocspx-"),
    _prefixed("aws key id", r"(?:AKIA|ASIA|ABIA|ACCA)[A-Z2-7]{16}", "akia", "asia", "abia", "acca"),
    _prefixed("github token", r"gh[pousr]_[A-Za-z0-9]{36,}", "ghp_", "gho_", "ghu_", "ghs_", "ghr_"),
    _prefixed("github token", r"github_pat_[A-Za-z0-9_]{22,}", "github_pat_"),
    _prefixed("gitlab token", r"gl(?:pat|ptt|dt|rt|cbt|soat|ft)-[A-Za-z0-9_-]{20,}", "gl"),
    _prefixed("slack token", r"xox[abeoprs]-[A-Za-z0-9-]{10,}", "xox"),
    _prefixed("slack token", r"xapp-\d-[A-Za-z0-9-]{20,}", "xapp-"),
    _rule(
        "slack webhook",
        r"https://hooks\.slack\.com/(?:services|workflows)/(?P<secret>[A-Za-z0-9/]{20,})",
        "hooks.slack.com",
    ),
    _rule(
        "discord webhook",
        r"https://(?:\w+\.)?discord(?:app)?\.com/api/webhooks/\d+/(?P<secret>[A-Za-z0-9_-]{40,})",
        "/api/webhooks/",
    ),
    _prefixed("discord token", r"[MNO][A-Za-z\d_-]{23,27}\.[A-Za-z\d_-]{6}\.[A-Za-z\d_-]{27,40}", "."),
    _rule("telegram bot token", rf"(?<![0-9A-Za-z_])\d{{8,10}}:AA[A-Za-z0-9_-]{{32,35}}{_END}", ":aa"),
    _rule("telegram bot token", rf"(?<=/bot)\d{{6,10}}:[A-Za-z0-9_-]{{34,36}}{_END}", "/bot"),
    _prefixed("hugging face token", r"(?:hf|api_org)_[A-Za-z0-9]{30,}", "hf_", "api_org_"),
    _prefixed("replicate token", r"r8_[A-Za-z0-9]{30,}", "r8_"),
    _prefixed("groq key", r"gsk_[A-Za-z0-9]{40,}", "gsk_"),
    _prefixed("xai key", r"xai-[A-Za-z0-9]{40,}", "xai-"),
    _prefixed("perplexity key", r"pplx-[A-Za-z0-9]{30,}", "pplx-"),
    _prefixed("tavily key", r"tvly-(?:dev-|prod-)?[A-Za-z0-9]{20,}", "tvly-"),
    _prefixed("firecrawl key", r"fc-[a-f0-9]{32}", "fc-"),
    _prefixed("nvidia key", r"nvapi-[A-Za-z0-9_-]{40,}", "nvapi-"),
    _prefixed("linear key", r"lin_(?:api|oauth)_[A-Za-z0-9]{30,}", "lin_"),
    _prefixed("notion token", r"(?:ntn|secret)_[A-Za-z0-9]{40,}", "ntn_", "secret_"),
    _prefixed("npm token", r"npm_[A-Za-z0-9]{36}", "npm_"),
    _prefixed("pypi token", r"pypi-AgE[A-Za-z0-9_-]{50,}", "pypi-age"),
    _prefixed("digitalocean token", r"do[opr]_v1_[a-f0-9]{64}", "_v1_"),
    _prefixed("sendgrid key", r"SG\.[A-Za-z0-9_-]{20,24}\.[A-Za-z0-9_-]{40,48}", "sg."),
    _prefixed("mailgun key", r"key-[a-f0-9]{32}", "key-"),
    _prefixed("twilio key", r"SK[a-f0-9]{32}", "sk"),
    _prefixed("shopify token", r"shp(?:at|ca|pa|ss)_[a-fA-F0-9]{32}", "shp"),
    _prefixed("databricks token", r"dapi[a-f0-9]{32}(?:-\d)?", "dapi"),
    _prefixed("vault token", r"hv[sbr]\.[A-Za-z0-9_-]{24,}", "hvs.", "hvb.", "hvr."),
    _prefixed("sentry token", r"sntry[su]_[A-Za-z0-9+/=_-]{40,}", "sntry"),
    _prefixed("tailscale key", r"tskey-[a-z]+-[A-Za-z0-9]+-[A-Za-z0-9]{16,}", "tskey-"),
    _prefixed("doppler token", r"dp\.(?:pt|st|ct|sa|scim|audit)\.[A-Za-z0-9._-]{30,}", "dp."),
    _rule("json web token", r"eyJ[A-Za-z0-9_-]{10,}\.eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}", "eyj"),
    _rule(
        "bearer token",
        r"Bearer\s+(?P<secret>[A-Za-z0-9._~+/-]{16,}=*)",
        "bearer",
        check=lambda secret: _made_up(secret) and any(c.isdigit() for c in secret),
        flags=re.IGNORECASE,
    ),
    _rule(
        "basic credentials",
        r"Authorization\\?[\"']?\s*[:=]\s*\\?[\"']?Basic\s+(?P<secret>[A-Za-z0-9+/]{8,}=*)",
        "basic",
        flags=re.IGNORECASE,
    ),
    _rule(
        "password in a URL",
        r"://[^\s/:@\"'`<>]{0,100}:(?P<secret>[^\s/@\"'`<>]{2,200})@(?=[A-Za-z0-9\[._-])",
        "://",
        check=_in_url,
    ),
    _rule(
        "token in a URL",
        r"[?&#](?:access_token|api_?key|key|token|auth|secret|sig|signature|password|X-Amz-Signature|X-Amz-Security-Token)"
        r"=(?P<secret>[A-Za-z0-9._~%+/=-]{12,})",
        "?",
        "&",
        "#",
        check=_made_up,
        flags=re.IGNORECASE,
    ),
    _rule(
        "password",
        r"(?:\bcurl\b[^\n]{0,200}?\s(?:-u|--user)\s+[\"']?[^\s:\"']{1,80}:|\bsshpass\s+-p\s*[\"']?|\bmysql\b[^\n]{0,100}?\s-p)"
        r"(?P<secret>[^\s\"']{4,100})",
        "curl",
        "sshpass",
        "mysql",
        check=_made_up,
    ),
    _named("password", r"pass[-_ ]?word", "word"),
    _named("password", r"passwd", "passwd"),
    _named("password", r"passphrase", "passphrase"),
    _named("password", r"passcode", "passcode"),
    _named("password", r"passwort", "passwort"),
    _named("password", r"pwd", "pwd"),
    _named("password", r"senha", "senha"),
    _named("password", r"contraseña", "contraseña"),
    _named("token", r"key(?:[-_ ]?id)?", "key", _KINDS_OF_KEYS),
    _named("token", r"secret", "secret"),
    _named("token", r"token", "token"),
    _named("token", r"credentials?", "credential"),
)
"""The rules in the order in which they are applied: exact ones first, so that a key is called by its kind."""

EMAIL = _rule(
    "e-mail address",
    r"(?<![A-Za-z0-9._%+/:-])[A-Za-z0-9._%+-]{1,64}@(?:[A-Za-z0-9-]{1,63}\.){1,8}[A-Za-z]{2,24}(?![A-Za-z0-9-])",
    "@",
)
HOME = _rule(
    "home path",
    r"(?:/home/|/Users/|(?<![A-Za-z])[A-Za-z]:\\{1,2}Users\\{1,2})(?P<secret>(?!Shared\b|Public\b)[^\s/\\\"'`:;,<>|*?()\[\]]{1,64})",
    "/home/", "/users/", "\\users\\",
)  # fmt: skip
"""What may be replaced besides, where it is asked for: the addresses and the user's name in paths."""
