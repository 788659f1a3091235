// prices
