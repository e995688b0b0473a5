use super::Tenant;

#[test]
fn a_statement_names_the_schema_of_its_tenant() {
    let sql = "SELECT myclaw.a, xmyclaw, myclaw_b, 'myclaw' FROM myclaw.myclaw";
    let of = |name| Tenant::new(name).unwrap().statement(sql).into_owned();
    assert_eq!(of("main"), sql);
    let own = "SELECT myclaw_9.a, xmyclaw, myclaw_b, 'myclaw_9' FROM myclaw_9.myclaw_9";
    assert_eq!(of("9"), own);
}

#[test]
fn only_names_of_tenants_become_part_of_a_statement() {
    for name in ["", "Anna", "a-b", "a b", "ä", "a\"b", "a.b", &"a".repeat(41)] {
        assert!(Tenant::new(name).is_err(), "{name}");
    }
    assert_eq!(Tenant::new(&"a".repeat(40)).unwrap().name().len(), 40);
}
