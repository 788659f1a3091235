use shop::total;

#[test]
fn takes_the_discount_off() {
    let sum = total(&[1, 2], 1);
    assert_eq!(sum, 2);
}
