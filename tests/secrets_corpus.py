"""Texts with a secret and texts without one, for the redaction.

The secrets are made up, and put together from pieces when this file is run, so that no scanner takes
the file for a leak.
"""

from __future__ import annotations

import random
import string

_random = random.Random(5)

LETTERS = string.ascii_letters + string.digits
HEX = "0123456789abcdef"
URLSAFE = LETTERS + "-_"


def _some(alphabet: str, length: int) -> str:
    """Characters of an alphabet with a digit and a letter among them, none of them twice in a row."""
    while True:
        text = "".join(_random.choice(alphabet) for _ in range(length))
        safe = text[0].isalnum() and text[-1].isalnum()
        if safe and (len(text) < 4 or (any(c.isdigit() for c in text) and any(c.isalpha() for c in text))):
            return text


def _key(prefix: str, length: int, alphabet: str = LETTERS) -> str:
    return prefix + _some(alphabet, length)


_PEM = "\n".join(_some(LETTERS, 64) for _ in range(5))


def _block(name: str) -> str:
    return f"-----BEGIN {name}" + f"KEY-----\n{_PEM}\n-----END {name}" + "KEY-----"


def _jwt() -> str:
    return ".".join(("ey" + _key("J", 30), "ey" + _key("J", 60), _some(URLSAFE, 43)))


def _secrets() -> list[tuple[str, str, str]]:
    """(kind, text around the secret with `{}` in its place, the secret)."""
    return [
        ("openai key", "OPENAI_API_KEY={}", _key("sk" + "-proj-", 48, URLSAFE)),
        ("openai key", "here is my key {} please use it", _key("sk" + "-", 48)),
        ("openai key", 'client = OpenAI(api_key="{}")', _key("sk" + "-svcacct-", 60, URLSAFE)),
        ("openai key", "密钥是{}。", _key("sk" + "-", 32)),
        ("anthropic key", "export ANTHROPIC_API_KEY='{}'", _key("sk" + "-ant-api03-", 93, URLSAFE)),
        ("anthropic key", "x-api-key: {}", _key("sk" + "-ant-oat01-", 80, URLSAFE)),
        ("openrouter key", '{{"key": "{}"}}', _key("sk" + "-or-v1-", 64, HEX)),
        ("stripe key", "STRIPE={}", _key("sk" + "_live_", 24)),
        ("stripe key", "use {} for tests", _key("rk" + "_test_", 24)),
        ("stripe key", "{}", _key("whsec" + "_", 32)),
        ("google key", "https://maps.googleapis.com/x?key={}", _key("AI" + "za", 35)),
        ("google key", "GEMINI_API_KEY: {}", _key("AI" + "za", 35)),
        ("google token", "{} expires in an hour", _key("ya" + "29.", 60, URLSAFE)),
        ("google secret", "client secret {}", _key("GOC" + "SPX-", 28)),
        ("aws key id", "aws_access_key_id = {}", "AK" + "IA" + "Q3EGHZ7BLKWNP4TV"),
        ("aws key id", "the id {} was rotated", "AS" + "IA" + "J7XM2DQRT5YKVA3B"),
        ("token", "aws_secret_access_key = {}", _some(LETTERS + "/+", 40)),
        ("token", "AWS_SECRET_ACCESS_KEY={}", _some(LETTERS + "/+", 40)),
        ("github token", "git clone https://{}@github.com/a/b", _key("gh" + "p_", 36)),
        ("github token", "GITHUB_TOKEN={}", _key("gh" + "o_", 36)),
        ("github token", "token: {}", _key("gh" + "s_", 36)),
        ("github token", "{}", _key("github" + "_pat_", 22) + "_" + _some(LETTERS, 59)),
        ("gitlab token", "PRIVATE-TOKEN: {}", _key("gl" + "pat-", 20)),
        ("slack token", "SLACK_BOT_TOKEN={}", _key("xo" + "xb-123456789012-123456789012-", 24)),
        ("slack token", "{}", _key("xo" + "xp-1234567890-1234567890-", 32, HEX)),
        ("slack token", "{}", _key("xa" + "pp-1-A0123456789-1234567890123-", 64, HEX)),
        ("slack webhook", "post to https://hooks.slack.com/services/{}", "T0AB12CD3/B0EF45GH6/" + _some(LETTERS, 24)),
        ("discord webhook", "https://discord.com/api/webhooks/123456789012345678/{}", _some(URLSAFE, 68)),
        ("discord token", "DISCORD: {}", _key("MT", 24) + "." + _some(LETTERS, 6) + "." + _some(LETTERS, 38)),
        ("telegram bot token", "bot token is {}", _key("7123456789:A" + "A", 33)),
        ("telegram bot token", "curl https://api.telegram.org/bot{}/getMe", _key("712345678:A" + "A", 33)),
        ("hugging face token", "HF_TOKEN={}", _key("h" + "f_", 34)),
        ("replicate token", "{}", _key("r" + "8_", 37)),
        ("groq key", "GROQ_API_KEY={}", _key("gs" + "k_", 52)),
        ("xai key", "{}", _key("xa" + "i-", 80)),
        ("perplexity key", "{}", _key("pp" + "lx-", 48)),
        ("tavily key", "TAVILY_API_KEY={}", _key("tv" + "ly-dev-", 32)),
        ("firecrawl key", "{}", _key("f" + "c-", 32, HEX)),
        ("nvidia key", "{}", _key("nv" + "api-", 64, URLSAFE)),
        ("linear key", "{}", _key("lin" + "_api_", 40)),
        ("notion token", "NOTION={}", _key("nt" + "n_", 46)),
        ("npm token", "//registry.npmjs.org/:_authToken={}", _key("np" + "m_", 36)),
        ("pypi token", "password = {}", _key("py" + "pi-AgEIcHlwaS5vcmc", 120, URLSAFE)),
        ("digitalocean token", "{}", _key("do" + "p_v1_", 64, HEX)),
        ("sendgrid key", "{}", "S" + "G." + _some(LETTERS, 22) + "." + _some(LETTERS, 43)),
        ("mailgun key", "api:{}", _key("ke" + "y-", 32, HEX)),
        ("twilio key", "{}", _key("S" + "K", 32, HEX)),
        ("shopify token", "{}", _key("shp" + "at_", 32, HEX)),
        ("databricks token", "{}", _key("da" + "pi", 32, HEX)),
        ("vault token", "VAULT_TOKEN={}", _key("hv" + "s.", 90, URLSAFE)),
        ("tailscale key", "tailscale up --authkey {}", _key("tsk" + "ey-auth-k7Qm2xB4-", 30)),
        ("age key", "{}", _key("AGE-SECRET" + "-KEY-1", 58, "QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L")),
        ("json web token", "{}", _jwt()),
        ("json web token", "Authorization: Bearer {}", _jwt()),
        ("bearer token", "curl -H 'Authorization: Bearer {}' https://api.example.com", _some(LETTERS, 40)),
        ("bearer token", "Authorization: bearer {}", _some(HEX, 32)),
        ("basic credentials", "Authorization: Basic {}", _some(LETTERS, 22) + "=="),
        ("private key", "{}", _block("RSA PRIVATE ")),
        ("private key", "my key:\n{}\nthanks", _block("OPENSSH PRIVATE ")),
        ("private key", "{}", _block("PRIVATE ")),
        ("private key", "{}", _block("EC PRIVATE ")),
        ("private key", '{{"private_key": "{}"}}', _block("PRIVATE ").replace("\n", "\\n")),
        ("private key", "{}", "-----BEGIN PRIVATE " + "KEY-----\n" + _PEM),
        ("password in a URL", "postgres://admin:{}@db.internal:5432/app", "Tr0ub4dor&3"),
        ("password in a URL", "redis://:{}@localhost:6379/0", "s3cr3tR3d1s"),
        ("password in a URL", "mongodb+srv://user:{}@cluster0.mongodb.net", "qwertzuiop"),
        ("password in a URL", "https://me:{}@git.example.org/repo.git", "blue-Giraffe-77"),
        ("password in a URL", "smtp://mailer%40x.org:{}@mail.x.org:587", "p%40ss%23w0rd"),
        ("token in a URL", "https://x.org/cb?access_token={}", _some(LETTERS, 40)),
        ("token in a URL", "https://b.s3.amazonaws.com/f?X-Amz-Date=1&X-Amz-Signature={}", _some(HEX, 64)),
        ("token in a URL", "wss://x.org/socket?token={}&v=2", _some(LETTERS, 32)),
        ("password", "password: {}", "Tr0ub4dor&3"),
        ("password", "the password is {}, keep it", "hunter2x7"),
        ("password", "DB_PASSWORD={}", "kJ8$mLq2zR"[:4] + "mLq2zR"),
        ("password", '"password": "{}"', "n0tTelling-You"),
        ("password", 'arguments: "{{\\"password\\": \\"{}\\"}}"', "n0tTelling8"),
        ("password", "Passwort? passwd={}", "Sommer2024!"),
        ("password", "PGPASSWORD={} psql -h db", "x7Yq-pl0P"),
        ("password", "pwd := {}", "aq1sw2de3"),
        ("password", "set the password to {} now", "Winter2025!"),
        ("password", "passphrase: {}", "7-lanterns_Over-Rhine9"),
        ("password", "curl -u admin:{} https://x.org", "Adm1nAdm1n"),
        ("password", "sshpass -p {} ssh root@10.0.0.1", "r00t4ever!"),
        ("password", "**Password:** `{}`", "Gr33n-Door"),
        ("token", "api_key = '{}'", _some(LETTERS, 32)),
        ("token", "API-KEY: {}", _some(HEX, 40)),
        ("token", "client_secret={}", _some(URLSAFE, 36)),
        ("token", '"access_token":"{}"', _some(URLSAFE, 50)),
        ("token", "refresh token: {}", _some(LETTERS, 64)),
        ("token", "WEBHOOK_SECRET={}", _some(HEX, 40)),
        ("token", "AccountKey={}", _some(LETTERS + "+/", 86)),
        ("token", "session_token => {}", _some(LETTERS, 44)),
        ("token", "const apiKey = `{}`", _some(LETTERS, 28)),
    ]  # fmt: skip


TRUE = _secrets()

FALSE = [
    # prose about secrets
    "Please enter your password to continue.",
    "The password is required and must have at least 12 characters.",
    "password: required",
    "Passwords: see the vault",
    "I forgot my password, can you reset it?",
    "the token count is 1234 and the key is to listen",
    "token: 1234567",
    "tokens: 8192, max_tokens=4096",
    "The secret is to keep the dough cold.",
    "The secret to happiness: simplicity.",
    "Key: C major",
    "API key: see settings",
    "api_key is missing",
    "an api key is needed for this",
    "The bearer of this letter is my friend.",
    "Bearer authentication is used throughout.",
    "Set the password to something long.",
    "The passphrase is optional",
    "This key idea: access tokens expire.",
    "secret: undisclosed",
    "My token of appreciation: flowers",
    # code that handles secrets
    "token = get_token()",
    "password = os.environ['DB_PASSWORD']",
    'api_key = os.getenv("OPENAI_API_KEY")',
    "apiKey: process.env.API_KEY",
    "api_key: ${API_KEY}",
    "password: $DB_PASSWORD",
    "password: {{ vault_password }}",
    "self.token = token",
    "client_secret = settings.client_secret",
    "token: accessToken",
    "def login(user, password=None):",
    "if password == other_password:",
    "password: str = Field(min_length=8)",
    "const token = await fetchToken(id)",
    "secret_key_base: <%= ENV[\"SECRET\"] %>",
    "--password PASSWORD",
    "access_token: string;",
    "token = tokenizer.decode(ids)",
    "auth_token=response.headers['x-token']",
    "password: false",
    "token=null&page=2",
    "password => bcrypt_hash",
    "token: args.token",
    # gaps to fill
    "OPENAI_API_KEY=sk-...",
    "OPENAI_API_KEY=your-api-key-here",
    "api_key: YOUR_API_KEY",
    "password: changeme",
    "password=********",
    "token: <your token>",
    "sk-xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
    "ghp_" + "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
    "AKIAIOSFODNN7EXAMPLE",
    "postgres://user:password@localhost/db",
    "postgres://user:***@localhost/db",
    "https://user:<password>@host",
    "api_key=[redacted: openai key]",
    "password: [redacted: password]",
    "password: xxxxxxxx",
    "secret=example-secret",
    # long strings that are no secrets
    "commit 3f786850e387550fdab836ed7e6dc881de23001b",
    "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
    "uuid 550e8400-e29b-41d4-a716-446655440000",
    "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk",
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ8Xb9yqQ user@host",
    "-----BEGIN PUBLIC KEY-----\nMFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAE\n-----END PUBLIC KEY-----",
    "-----BEGIN CERTIFICATE-----\nMIIBhTCCASugAwIBAgIQIRi6zePL6mKjOipn\n-----END CERTIFICATE-----",
    "session 20260601_120000_ab12cd",
    "call_9hT4kZq2LmNpQ7rXs8Yv",
    "etag: W/\"5f3d9c-17a8e6b2f40\"",
    "integrity=sha512-9NTnv8M1oC0vZbS3l2pXyQ4tRkWjUuVhYgDfEaKcLmPoIxQzNwBsHrTe",
    "https://github.com/owner/repo/blob/3f786850e387550fdab836ed7e6dc881de23001b/a.py#L10-L20",
    "https://example.org/search?q=secret+garden&page=2",
    "https://example.org/watch?v=dQw4w9WgXcQ",
    "http://localhost:8001/state/messages?_search=password",
    "git@github.com:owner/repo.git",
    "ssh://git@github.com:22/owner/repo.git",
    "user@example.com:8080",
    "npm install --save-dev @types/node@20.11.5",
    "The ratio a://b is not a link",
    "module.function.another_module_name",
    "v1.22.333-rc.4+build.5678",
    "SKU12345678901234567890",
    "sk-learn and sk-image are libraries",
    "risk-adjusted-returns-of-the-portfolio-in-2024",
    "task-force-on-desk-organisation-and-more",
    "the glpat- prefix marks a GitLab token",
    "keyboard-shortcut-for-opening-files",
    "key-value-store-of-the-application",
    "password_hash column of type text",
    "token_count 512, prompt_tokens 1024, key_size 2048",
    "2026-11-29T12:30:45Z",
    "token: 2026-11-29",
    "token 10.5k",
    "密码：请输入密码",
    "パスワードを入力してください",
    "Ключ: смотри в хранилище",
    "/home/user/.ssh/id_ed25519.pub",
    "eyJhbGciOiJIUzI1NiJ9 is the head of a JWT",
]  # fmt: skip
