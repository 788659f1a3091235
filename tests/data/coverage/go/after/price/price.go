package price

import "errors"

// Discount is taken off for members.
const Discount = 10

func Price(n int, member bool) (int, error) {
	if n < 0 {
		return 0, errors.New("negative")
	} else if member {
		/*
			a tenth
		*/
		n -= n / Discount
	}

	// what is left
	return n, nil
}
