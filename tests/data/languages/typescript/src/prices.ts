export function total(prices: number[], discount = 0): number {
  return prices.reduce((sum, price) => sum + price, 0) - discount;
}

export function receipt(prices: number[]): string {
  return `total: ${total(prices)}`;
}
