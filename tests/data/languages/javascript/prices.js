export function total(prices, discount = 0) {
  return prices.reduce((sum, price) => sum + price, 0) - discount;
}

export function receipt(prices) {
  return `total: ${total(prices)}`;
}
