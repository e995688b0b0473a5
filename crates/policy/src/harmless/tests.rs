use super::catalog::{Catalog, FILES};

#[test]
fn every_line_of_the_descriptions_is_a_directive() {
    assert_eq!(Catalog::read(&FILES).mistakes, Vec::<&str>::new());
}
