use super::*;

#[test]
fn a_renumbered_mailbox_is_read_from_the_newest_mails_on() {
    let mut progress = Progress {
        validity: 1,
        next: 50,
        since: 1_000,
        newest: 1_000_000,
        renumbered: 0,
        failed: 0,
    };
    progress.follow(Mailbox { validity: 1, next: 60 });
    assert_eq!((progress.next, progress.is_old(50, Some(5))), (50, false));
    progress.follow(Mailbox { validity: 2, next: 30 });
    assert_eq!((progress.next, progress.renumbered), (1, 30));
    let recent = 1_000_000 - LOOK_BACK;
    for (uid, date, is_old) in [
        (1, Some(recent - 1), true),
        (1, Some(recent), false),
        (1, None, false),
        (29, Some(5), true),
        (30, Some(5), false),
    ] {
        assert_eq!(progress.is_old(uid, date), is_old, "{uid} {date:?}");
    }
    progress.pass(29, Some(2_000_000));
    assert_eq!((progress.next, progress.newest), (30, 1_000_000));
    progress.pass(30, Some(2_000_000));
    assert_eq!((progress.next, progress.newest), (31, 2_000_000));
}

#[test]
fn the_dates_of_servers_are_read() {
    assert_eq!(seconds("17-Jul-1996 02:44:25 -0700"), Some(837_596_665));
    assert_eq!(seconds(" 7-Jul-1996 02:44:25 +0000"), Some(836_707_465));
    assert_eq!(seconds("yesterday"), None);
}

#[test]
fn a_mail_that_cannot_be_read_is_tried_a_few_times() {
    let mut progress =
        Progress { validity: 1, next: 5, since: 0, newest: 0, renumbered: 0, failed: 0 };
    let tries = std::iter::repeat_with(|| progress.fail(7)).take_while(|is_over| !is_over).count();
    assert_eq!((tries + 1, progress.next), (MOST_TRIES as usize, 7));
    progress.pass(7, None);
    assert_eq!((progress.next, progress.fail(8)), (8, false));
}
