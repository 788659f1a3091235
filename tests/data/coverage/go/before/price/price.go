package price
