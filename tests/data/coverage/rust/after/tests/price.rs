#[test]
fn takes_nothing_off() {
    assert_eq!(shop::price(2, false), Some(2));
}
