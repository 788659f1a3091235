/// What is left of a price.
///
/// ```
/// assert_eq!(shop::price(1, false), Some(1));
/// ```
pub fn price(n: i64, member: bool) -> Option<i64> {
    if n < 0 {
        return None;
    }
    if member {
        let tenth = n / 10;
        Some(n - tenth)
    } else {
        Some(n)
    }
}

pub fn unused() -> i64 {
    1
}
