package limit

import "testing"

func TestAdds(t *testing.T) {
	if Total([]int{1, 2}, 0) != 3 {
		t.Fatal("wrong")
	}
}
