"""English."""

from __future__ import annotations

from state_ledger.demo.prose.language import Language, Theme

LANGUAGE = Language(
    code="en",
    space=" ",
    summary="Summary of the conversation so far",
    titles=("{thing} in {place}", "A closer look at {thing}", "Plan for {thing}", "Notes on {thing} for {place}"),
    questions=(
        "can you have a look at {thing}?",
        "what changed with {thing} since last week?",
        "please keep it short, I only need the part about {thing}.",
        "I tried this twice and {thing} still looks wrong to me.",
        "which would you choose for {place}, and why?",
        "thanks, that works. Next: {thing}.",
    ),
    answers=(
        "I checked {thing} first, because everything else depends on it.",
        "There are two ways to do this for {place}; the simpler one is enough here.",
        "The short answer is yes, with one exception for {thing}.",
        "I have not changed anything outside {place}.",
        "If you prefer, I can compare both and write down the difference.",
        "That part is done, and {thing} is as it should be.",
        "I am not certain about {thing}, so I will verify it before going on.",
    ),
    steps=(
        "look at {thing} as it is now",
        "write down what {place} needs",
        "make the smallest change that helps",
        "check {thing} again",
        "leave a note for the next person in {place}",
        "come back to this on Friday",
    ),
    themes={
        "coding": Theme(
            things=("the failing test", "the parser", "the retry loop", "the type hints", "the date filter",
                    "the import cycle", "the pagination", "the cache key", "the flaky fixture", "the release notes"),
            places=("the billing module", "the API client", "the command line tool", "the worker", "the docs folder",
                    "the upload form", "the main branch"),
            titles=("Fix {thing} in {place}", "Refactor {place}", "Review of {thing}", "Why {thing} breaks {place}"),
            questions=(
                "why does {thing} fail only on the second run?",
                "could you write a test for {thing} before you touch {place}?",
                "the build is red since this morning, I suspect {thing}.",
            ),
            answers=(
                "the error comes from {thing}: an empty list reaches it, and it takes the first element.",
                "I moved {thing} out of {place} and added a test that fails without the fix.",
                "all 214 tests pass now, including the one for {thing}.",
            ),
        ),
        "servers": Theme(
            things=("the backup job", "the certificate", "disk usage", "the reverse proxy", "the mail queue",
                    "the firewall rule", "log rotation", "the nightly restart", "memory pressure", "the DNS record"),
            places=("the home server", "the staging host", "the database machine", "the mail gateway", "the NAS",
                    "the monitoring box"),
            titles=("{thing} on {place}", "Check {place}", "Alert: {thing}", "Move {thing} to {place}"),
            questions=(
                "{place} was slow last night, is it {thing}?",
                "how much space is left on {place}?",
                "please set up {thing} so that I never have to think about it again.",
            ),
            answers=(
                "{place} has been up for 41 days, and {thing} used most of the last hour's time.",
                "the log shows three timeouts around 03:10, all while {thing} was running.",
                "I restarted nothing; {thing} recovered by itself after the queue was empty.",
            ),
        ),
        "travel": Theme(
            things=("the night train", "a quiet hotel", "the museum pass", "the ferry", "a walking route",
                    "the connecting flight", "the rental car", "the packing list", "a table for four"),
            places=("Lisbon", "Kyoto", "the Dolomites", "Seoul", "Edinburgh", "Taipei", "the coast of Brittany"),
            titles=("{place} in five days", "Getting to {place} by train", "{thing} for {place}"),
            questions=(
                "we have three free days in {place}, what should we not miss?",
                "is {thing} worth it when it rains?",
                "find something cheaper than {thing}, close to the old town.",
            ),
            answers=(
                "in {place} the mornings are calm, so plan {thing} before ten.",
                "{thing} leaves every two hours and takes about fifty minutes.",
                "for {place} I would book {thing} now and leave the rest open.",
            ),
        ),
        "cooking": Theme(
            things=("the sourdough", "a lentil stew", "roasted carrots", "the lemon tart", "kimchi pancakes",
                    "the tomato sauce", "a quick miso soup", "the birthday cake"),
            places=("a weeknight dinner", "six guests", "the small oven", "the freezer", "a picnic"),
            titles=("{thing} for {place}", "Dinner: {thing}", "What to do with {thing}"),
            questions=(
                "I have no butter left, can I still make {thing}?",
                "how long does {thing} keep?",
                "scale {thing} to {place}, please, in grams.",
            ),
            answers=(
                "yes: olive oil works, but let {thing} rest ten minutes longer.",
                "for {place}, take 480 g of flour and keep {thing} covered.",
                "{thing} keeps three days in the fridge and two months in the freezer.",
            ),
        ),
        "money": Theme(
            things=("the electricity bill", "the travel budget", "the tax form", "the subscription list",
                    "the rent increase", "the invoice for March", "the savings plan"),
            places=("this quarter", "the shared flat", "the small business", "next year"),
            titles=("{thing}: what is left", "Budget for {place}", "Sort out {thing}"),
            questions=(
                "how much did we spend on {thing}?",
                "put {thing} into a table by month.",
                "what would we save for {place} without {thing}?",
            ),
            answers=(
                "{thing} went up by 7 percent; most of it came in two months.",
                "without {thing} you would keep about 38 a month for {place}.",
                "I put {thing} into a table and marked the two figures I could not verify.",
            ),
        ),
    },
)
