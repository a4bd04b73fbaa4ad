//! Pages and the Markdown made of them: ordinary ones, and those made to break a reader.

use super::*;

const URL: &str = "https://example.com/docs/page.html";

#[track_caller]
fn check(html: &str, expected: &str) {
    assert_eq!(read(html.to_owned(), URL, true).body, expected, "{html}");
}

#[track_caller]
fn check_plain(html: &str, expected: &str) {
    assert_eq!(read(html.to_owned(), URL, false).body, expected, "{html}");
}

#[test]
fn what_people_read_becomes_markdown() {
    check(
        "<h1>Title</h1><p>One <b>two</b> <i>three</i> <code>four()</code></p>",
        "# Title\n\nOne **two** *three* `four()`",
    );
    check("<ul><li>a<li>b<ul><li>c</ul></ul><ol start=3><li>d<li>e</ol>", "- a\n- b\n  - c\n\n3. d\n4. e");
    check(
        "<blockquote>said</blockquote><hr><pre><code class=language-rust>let x = 1;\n</code></pre>",
        "> said\n\n* * *\n\n```rust\nlet x = 1;\n```",
    );
    check("<table><tr><th>a<th>b<tr><td>1<td>2</table>", "| a | b |\n| --- | --- |\n| 1 | 2 |");
    check(
        "<table><caption>C</caption><thead><tr><th>a|b<tbody><tr><td>1<p>2<table><tr><td>3</table>",
        "C\n\n| a\\|b |\n| --- |\n| 1 2 3 |",
    );
    check("<table><tr><td>left<td><p>right</table>after", "left\n\nright\n\nafter");
    check(
        "<p>a &amp; b &lt;tag&gt; &nbsp;c &#x20ac; &unknown; &#xffffffff;",
        "a & b \\<tag> \u{a0}c € &unknown; \u{fffd}",
    );
}

#[test]
fn links_are_absolute_and_lead_somewhere() {
    check(r#"<a href="../x?q=1#y">x</a>"#, "[x](https://example.com/x?q=1#y)");
    check(r#"<a href="//other.example/">x</a>"#, "[x](https://other.example/)");
    check(r#"<a href="mailto:a@example.com">x</a>"#, "[x](mailto:a@example.com)");
    check(r#"<base href="/base/"><a href="x">x</a>"#, "[x](https://example.com/base/x)");
    check(r##"<a href="#top">x</a> <a href="javascript:alert(1)">y</a> <a href="data:text/html,z">z</a>"##, "x y z");
    check(r#"a<a href="/empty"> </a>b<a href="/icon"><svg>i</svg></a>c"#, "a bc");
    check(
        r#"<img src="a.png" alt="A chart"><img src="b.png"><img src="data:image/png;base64,AAAA" alt="Dot">"#,
        "![A chart](https://example.com/docs/a.png)",
    );
    check(&format!("<a href='/{}'>x</a>", "a".repeat(5_000)), "x");
}

#[test]
fn what_people_do_not_see_or_read_is_gone() {
    for hidden in [
        "<script>evil()</script>",
        "<style>p{}</style>",
        "<!-- comment -->",
        "<nav><a href=/>Home</a></nav>",
        "<div role=navigation>menu</div>",
        "<p hidden>x</p>",
        "<p aria-hidden=true>x</p>",
        "<p style='color:red; DISPLAY : none !important'>x</p>",
        "<p style='visibility:hidden'>x</p>",
        "<p style='opacity:0.0'>x</p>",
        "<p style='font-size:0px'>x</p>",
        "<template><p>x</p></template>",
        "<svg><title>x</title><text>y</text></svg>",
        "<iframe src=x>y</iframe>",
        "<button>Buy</button><select><option>x</select><textarea>y</textarea>",
    ] {
        check(&format!("<p>before</p>{hidden}<p>after</p>"), "before\n\nafter");
    }
    check("<p hidden=false style='display:block'>gone</p><p aria-hidden=false style='opacity:0.5'>seen</p>", "seen");
    check("<noscript><p>without scripts</p></noscript>", "without scripts");
}

#[test]
fn the_title_is_found() {
    let page = read("<head><title> A\n title </title></head><body><svg><title>x</title></svg>b".to_owned(), URL, true);
    assert_eq!((page.title.as_str(), page.body.as_str()), ("A title", "b"));
    assert_eq!(read("<p>none".to_owned(), URL, true).title, "");
}

#[test]
fn plain_text_keeps_lines() {
    check_plain(
        "<h1>T</h1><p>one <a href=x>two</a>\n  three<br>four</p><ul><li>a<li>b</ul>",
        "T\n\none two three\nfour\n\na\nb",
    );
    check_plain("<table><tr><td>1<td>2<tr><td>3<td>4</table>", "1\t2\n3\t4");
    check_plain("<pre>a\n  b</pre>c", "a\n  b\n\nc");
    check_plain("a*b_c", "a*b_c");
}

/// Small stacks find recursion; the real one is 512 KiB of wasm frames.
fn within_a_small_stack(work: impl FnOnce() + Send + 'static) {
    std::thread::Builder::new().stack_size(2 << 20).spawn(work).unwrap().join().unwrap();
}

#[test]
fn deep_pages_end() {
    for tag in [
        "div",
        "b",
        "span",
        "ul><li",
        "table><tr><td",
        "blockquote",
        "a href=x",
        "svg",
        "select><option",
        "pre><code",
        "details",
        "h1",
    ] {
        within_a_small_stack(move || {
            let html = format!("<p>start</p>{}deep", format!("<{tag}>").repeat(100_000));
            for as_markdown in [true, false] {
                let page = read(html.clone(), URL, as_markdown);
                assert!(page.body.starts_with("start"), "{tag}");
            }
        });
    }
    // A page that people made is whole.
    let page = read(format!("{}deep{}<p>after", "<div>".repeat(100), "</div>".repeat(100)), URL, true);
    assert_eq!((page.body.as_str(), page.left_out), ("deep\n\nafter", None));
}

#[test]
fn a_wide_cell_does_not_widen_the_others() {
    let html = format!("<table><tr><th>{}{}</table>", "w".repeat(1 << 20), "<tr><td>x".repeat(20_000));
    assert!(read(html, URL, true).body.len() < 2 << 20);
}

#[test]
fn what_is_left_out_is_said() {
    let page = read("<div>".repeat(100_000), URL, true);
    assert_eq!(page.left_out.as_deref(), Some("the page nests deeper than 200 levels; what follows is left out"));
    let page = read("<p>x</p>".repeat(200_000), URL, true);
    assert!(page.body.starts_with("x\n\nx"));
    assert_eq!(page.left_out.as_deref(), Some("the page has more than 100000 elements; the rest is left out"));
}

#[test]
fn broken_pages_end() {
    within_a_small_stack(|| {
        let long = "x".repeat(1 << 20);
        for html in [
            String::new(),
            "\0\0<\0".to_owned(),
            "<".repeat(100_000),
            "<a".repeat(100_000),
            "&".repeat(100_000),
            "&#".repeat(100_000),
            "&#x110000;&#0;&#xd800;&".to_owned(),
            "</".repeat(100_000),
            "</b>".repeat(100_000),
            "<!--".to_owned(),
            "<![CDATA[".repeat(10_000),
            format!("<p title='{long}'>after"),
            format!("<{long}>after"),
            format!("<a href='{long}'>after</a>"),
            "<b><p>".repeat(1_000),
            "<b a=1><i><p></b></i>".repeat(1_000),
            "<table><b>".repeat(1_000),
            "<table>x".repeat(1_000),
            "<option><select>".repeat(1_000),
            "<template>".repeat(10_000),
            "<svg><desc>".repeat(10_000),
            "<math><annotation-xml encoding=text/html>".repeat(10_000),
            "<frameset>".repeat(1_000),
            "<plaintext><p>".to_owned(),
            "<textarea>".to_owned(),
            "<ol start=99999999999999999999><li>x<li>y</ol>".to_owned(),
            "<table><td colspan=99999999>x".to_owned(),
            "<title>".to_owned(),
        ] {
            read(html.clone(), URL, true);
            read(html, "not a url", false);
        }
    });
}
