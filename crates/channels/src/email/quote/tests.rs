use super::*;

#[test]
fn quoted_mails_and_signatures_are_cut_off() {
    for (mail, new) in [
        ("yes\r\n\r\nOn Mon, 3 Nov 2026, Claw <claw@b.c> wrote:\r\n> really?\r\n> \r\n", "yes"),
        ("yes\n\nAm 3.11.2026 um 10:00 schrieb Claw\n<claw@b.c>:\n\n> wirklich?\n", "yes"),
        ("> really?\nyes\n> and this?\nno\n", "> really?\nyes\n> and this?\nno"),
        ("yes\n-- \nAnn\nExample Ltd.\n", "yes"),
        ("yes\n--\nAnn", "yes"),
        ("yes\n\n-----Original Message-----\nFrom: x\nolder\n", "yes"),
        ("yes\n\nFrom: Claw <c@b.c>\nSent: Monday\nTo: Ann\nSubject: x\n\nolder\n", "yes"),
        ("From: the start is no header\nyes", "From: the start is no header\nyes"),
        ("a list:\n\n> quoted, and nothing below", "a list:"),
        ("> only this", "> only this"),
        ("--\nAnn", "--\nAnn"),
        ("", ""),
        ("see https://a.b/-- or 1--2\n", "see https://a.b/-- or 1--2"),
    ] {
        assert_eq!(new_text(mail), new, "{mail:?}");
    }
}

#[test]
fn html_is_cut_at_the_marks_of_mail_programs() {
    for (html, new) in [
        ("<div>yes</div><div class=\"gmail_quote\">old", "<div>yes</div>"),
        ("yes<BLOCKQUOTE TYPE=\"cite\">old", "yes"),
        ("<p>nothing quoted</p>", "<p>nothing quoted</p>"),
    ] {
        assert_eq!(new_html(html), new);
    }
    assert_eq!(with_breaks("<div>a</DIV><li>b</li></b"), "<div>a<br></DIV><li>b<br></li></b");
}
