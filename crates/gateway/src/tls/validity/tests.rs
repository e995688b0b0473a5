use super::*;

fn der(tag: u8, content: &[u8]) -> Vec<u8> {
    let length = u8::try_from(content.len()).unwrap();
    let head = if length < 0x80 { vec![tag, length] } else { vec![tag, 0x81, length] };
    [&head[..], content].concat()
}

fn certificate(dates: &[(u8, &str)]) -> Vec<u8> {
    let dates: Vec<u8> = dates.iter().flat_map(|(tag, text)| der(*tag, text.as_bytes())).collect();
    let parts = [
        der(VERSION, &der(INTEGER, &[2])),
        der(INTEGER, &[1]),
        der(SEQUENCE, &[0; 100]),
        der(SEQUENCE, &[]),
        der(SEQUENCE, &dates),
    ];
    der(SEQUENCE, &der(SEQUENCE, &parts.concat()))
}

#[test]
fn both_forms_of_dates_are_read() {
    let whole = certificate(&[(UTC_TIME, "490102030405Z"), (GENERALIZED_TIME, "20510102030405Z")]);
    let dates = ["2049-01-02T03:04:05Z", "2051-01-02T03:04:05Z"].map(|text| text.parse().unwrap());
    assert_eq!(Validity::of(&whole), Some(Validity { from: dates[0], until: dates[1] }));
    let old = certificate(&[(UTC_TIME, "500102030405Z"), (UTC_TIME, "990102030405Z")]);
    let dates = ["1950-01-02T03:04:05Z", "1999-01-02T03:04:05Z"].map(|text| text.parse().unwrap());
    assert_eq!(Validity::of(&old), Some(Validity { from: dates[0], until: dates[1] }));
}

#[test]
fn anything_else_has_no_dates() {
    let whole = certificate(&[(UTC_TIME, "490102030405Z"), (UTC_TIME, "490102030405Z")]);
    for length in 0..whole.len() {
        assert_eq!(Validity::of(&whole[..length]), None, "{length}");
    }
    for dates in [
        &[(UTC_TIME, "490102030405Z"), (UTC_TIME, "491302030405Z")][..],
        &[(UTC_TIME, "490102030405Z"), (UTC_TIME, "490102030405")],
        &[(UTC_TIME, "490102030405Z"), (INTEGER, "490102030405Z")],
        &[(UTC_TIME, "490102030405Z")],
        &[],
    ] {
        assert_eq!(Validity::of(&certificate(dates)), None, "{dates:?}");
    }
    assert_eq!(Validity::of(&[SEQUENCE, 0x84, 0xff, 0xff, 0xff, 0xff]), None);
}
