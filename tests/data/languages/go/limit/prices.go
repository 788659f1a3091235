package limit

func Total(prices []int, discount int) int {
	sum := 0
	for _, price := range prices {
		sum += price
	}
	return sum - discount
}

func Receipt(prices []int) int {
	return Total(prices, 0)
}
