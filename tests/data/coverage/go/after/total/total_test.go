package total

import (
	"testing"

	"example.com/shop/price"
)

func TestTotal(t *testing.T) {
	if n, err := price.Price(2, false); n != 2 || err != nil {
		t.Fatal(n, err)
	}
}
