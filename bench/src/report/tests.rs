use super::{Aim, Row, Samples, Unit, digits, table};
use crate::options::Options;

fn samples(figures: &[f64]) -> Result<Samples, String> {
    Ok(figures.iter().copied().collect())
}

#[test]
fn a_median_is_the_middle_whatever_the_order() {
    assert_eq!(samples(&[3.0, 1.0, 2.0]).unwrap().median(), Some(2.0));
    assert_eq!(samples(&[4.0, 1.0, 2.0, 3.0]).unwrap().median(), Some(2.5));
    assert_eq!(samples(&[]).unwrap().median(), None);
}

#[test]
fn figures_keep_about_three_digits() {
    let shown: Vec<String> = [1234.5, 99.94, 9.876, 0.0345, 5.0].map(digits).into();
    assert_eq!(shown, ["1234", "99.9", "9.88", "0.035", "5"]);
}

#[test]
fn an_aim_is_met_missed_or_not_known() {
    let met = |myclaw: &[f64], bare: &[f64], aim| {
        Row::new("x", Unit::Milliseconds, samples(myclaw), samples(bare), aim).is_met()
    };
    assert_eq!(met(&[2.0], &[1.0], Aim::Ratio(2.0)), Some(true));
    assert_eq!(met(&[2.1], &[1.0], Aim::Ratio(2.0)), Some(false));
    assert_eq!(met(&[2.0], &[], Aim::Ratio(2.0)), None);
    assert_eq!(met(&[2.0], &[], Aim::Below(2.0)), Some(false));
    assert_eq!(met(&[1.0], &[], Aim::Exactly(1.0)), Some(true));
    assert_eq!(met(&[], &[1.0], Aim::Below(2.0)), None);
    assert_eq!(met(&[1.0], &[1.0], Aim::None), None);
}

#[test]
fn the_table_names_what_failed_once_and_below() {
    let options = Options::parse(["--runs", "3"].map(str::to_owned).into_iter()).unwrap();
    let failed = || Err("a plain turn ended with exit status: 1".to_owned());
    let rows = [
        Row::new(
            "start",
            Unit::Milliseconds,
            samples(&[3.0, 1.0, 2.0]),
            samples(&[0.5]),
            Aim::Ratio(3.0),
        ),
        Row::new("wall", Unit::Milliseconds, failed(), samples(&[1.0]), Aim::None),
        Row::new("memory", Unit::Megabytes, failed(), samples(&[1.0]), Aim::Below(15.0)),
    ];
    let expected = "\
Median of 3 runs (least – most).

| measured | myclaw       | bare loop | ratio | aim     | met |
| -------- | ------------ | --------- | ----- | ------- | --- |
| start    | 2 ms (1 – 3) | 0.50 ms   | 4 ×   | ≤ 3 ×   | no  |
| wall     | –            | 1 ms      | –     | –       | –   |
| memory   | –            | 1 MB      | –     | < 15 MB | –   |

myclaw: a plain turn ended with exit status: 1
";
    assert_eq!(table(&rows, &options), expected);
}
