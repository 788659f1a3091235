package app;

import static org.junit.jupiter.api.Assertions.assertEquals;

import org.junit.jupiter.api.Test;

class PricesTest {
    @Test
    void adds() {
        assertEquals(3, Prices.total(new int[] {1, 2}, 0));
    }
}
