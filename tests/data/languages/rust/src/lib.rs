pub fn total(prices: &[i64], discount: i64) -> i64 {
    prices.iter().sum::<i64>() - discount
}

pub fn receipt(prices: &[i64]) -> String {
    let sum = total(prices, 0);
    format!("total: {sum}")
}

#[test]
fn adds() {
    let sum = total(&[1, 2], 0);
    assert_eq!(sum, 3);
}
