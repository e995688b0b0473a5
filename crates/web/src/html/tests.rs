use super::*;

fn convert(html: &str) -> Readable {
    to_markdown(html, &Url::parse("https://site.example/dir/page").unwrap())
}

#[test]
fn an_article_is_kept_and_its_surroundings_are_not() {
    let paragraph = "<p>Sentences of the article, with commas, so that it is found. ".to_owned()
        + &"More words here, and more. ".repeat(20);
    let page = format!(
        "<title> The\n title </title><nav><a href=/a>Home</a></nav><article><h1>Head</h1>{paragraph}\
         {paragraph}<p>See <a href='../x?a=1&amp;b=2'>this</a> and <a href='javascript:bad()'>that</a>.\
         <ul><li>one<li>two</ul><pre><code class=language-rust>let a = 1;</code></pre></article>\
         <script>bad()</script><footer>Imprint</footer>"
    );
    let readable = convert(&page);
    assert_eq!(readable.title, "The title");
    assert!(!readable.is_cut);
    let text = readable.markdown;
    for part in
        ["[this](https://site.example/x?a=1&b=2)", "- one\n- two", "```rust\nlet a = 1;\n```"]
    {
        assert!(text.contains(part), "{part}: {text}");
    }
    for part in ["bad()", "Imprint", "Home"] {
        assert!(!text.contains(part), "{part}: {text}");
    }
}

#[test]
fn an_index_page_is_shown_whole() {
    let links: String =
        (0..50).map(|number| format!("<li><a href=/{number}>Entry {number}</a></li>")).collect();
    let text = convert(&format!("<body><div><ul>{links}</ul></div>")).markdown;
    assert_eq!(text.lines().count(), 50, "{text}");
    assert!(text.contains("[Entry 49](https://site.example/49)"), "{text}");
}

#[test]
fn tables_keep_their_columns() {
    let text = convert("<table><tr><th>a<th>b<tr><td>1<td>2</table>").markdown;
    assert!(text.contains("| a | b |") && text.contains("| 1 | 2 |"), "{text}");
}

#[test]
fn hostile_pages_end_and_keep_their_text() {
    // An eighth of the limit, because parsing without optimisation is slow.
    let many = |piece: &str| piece.repeat(MAX_HTML_BYTES / 8 / piece.len());
    for (name, page) in [
        ("nested", format!("{}deep words", many("<div>"))),
        ("formatting", format!("{}deep words", "<b><i><a>".repeat(3_000))),
        ("quoted", format!("{}deep words<pre>{}", "<blockquote>".repeat(190), many("\n"))),
        ("listed", format!("{}deep words", "<ul><li>".repeat(90))),
        ("tables", format!("deep words{}", "<table><tr><td>".repeat(60))),
        ("wide", format!("deep words{}", many("<li>x"))),
        ("links", format!("deep words{}", "<a href=x>y</a>".repeat(30_000))),
        ("attributes", format!("deep words<a {}>", many("a b "))),
        ("ampersands", format!("deep words{}", "&".repeat(50_000))),
        ("unclosed", "deep words<div class='".to_owned()),
        ("svg", format!("deep words<svg><script>{}", "<g>".repeat(50_000))),
    ] {
        let text = convert(&page).markdown;
        assert!(
            text.contains("deep words") || name == "nested",
            "{name}: {:?}",
            &text[..text.len().min(99)]
        );
        assert!(text.len() < 40 * MAX_HTML_BYTES, "{name}: {}", text.len());
    }
}

#[test]
fn a_page_that_is_too_long_is_cut() {
    let page = "<p>words ".repeat(MAX_HTML_BYTES / 8);
    assert!(convert(&page).is_cut);
}

#[test]
fn a_page_of_signs_that_are_parsed_one_by_one_is_cut() {
    // Without optimisation the usual time could end before the page.
    let parsed = |page: &str| parse(page, Instant::now() + 100 * PARSE_LIMIT);
    for piece in ["<", "&", "\0", "< \0", "<p>&\0"] {
        let page = format!("deep words{}", piece.repeat(MAX_HTML_BYTES / piece.len()));
        let (document, is_complete) = parsed(&page);
        assert!(!is_complete, "{piece:?}");
        let text = tree::plain_text(&document, &SKIPPED);
        assert!(text.starts_with("deep words"), "{piece:?}: {}", &text[..20]);
        // Each of these pieces has at least one sign in two bytes.
        assert!(text.len() <= 2 * (MAX_SIGNS + PIECE_BYTES), "{piece:?}: {}", text.len());
        assert!(document.errors.borrow().is_empty(), "{piece:?}");
    }
    let table = "<tr><td>100".repeat(MAX_HTML_BYTES / "<tr><td>100".len());
    assert!(parsed(&table).1, "a table of small numbers is whole");
}

#[test]
fn what_is_no_html_becomes_text() {
    assert_eq!(convert("").markdown, "");
    assert_eq!(convert("just text").markdown, "just text");
    assert_eq!(convert("\0\u{fffd}<").markdown.trim_matches(['\u{fffd}', '\\']), "<");
}

#[test]
fn targets_of_links_cannot_make_a_small_page_huge() {
    let links = "<a href=?>x</a> ".repeat(5_000);
    let long = format!("https://site.example/{}", "p".repeat(3_000));
    // The address of the page, then `<base>`, which is also too long for one target.
    for (url, head) in [
        (long.as_str(), String::new()),
        ("https://site.example/", format!("<base href='{long}'>")),
        ("https://site.example/", format!("<base href='/{}'>", "b".repeat(100_000))),
    ] {
        let page = format!("{head}<body>{links}");
        let text = to_markdown(&page, &Url::parse(url).unwrap()).markdown;
        assert!(text.len() < 5 * 1024 * 1024, "{} bytes", text.len());
        assert!(text.starts_with("[x](https://site.example/"), "{}", &text[..60]);
        assert_eq!(text.matches("[x]").count(), 5_000);
    }
}

#[test]
fn no_article_is_searched_where_writing_the_page_would_take_long() {
    let size = |html: &str| {
        let (document, is_complete) = parse(html, Instant::now() + PARSE_LIMIT);
        assert!(is_complete);
        tree::measure(&document)
    };
    // Text and attributes, and a letter whose first byte is looked at as well.
    for page in [
        "&".repeat(50_000),
        format!("<p title='{}'>x", "&".repeat(50_000)),
        "\u{a9}".repeat(40_000),
    ] {
        assert!(size(&page).escaping > MAX_ESCAPING, "{}", &page[..20]);
    }
    let usual = format!("<p title='a &amp; b'>{}</p>", "Fish &amp; chips \u{a9} 2026. ".repeat(30));
    assert!(size(&usual.repeat(100)).escaping < MAX_ESCAPING);
}
