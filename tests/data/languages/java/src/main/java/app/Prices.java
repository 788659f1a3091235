package app;

class Prices {
    static int total(int[] prices, int discount) {
        int sum = 0;
        for (int price : prices) {
            sum += price;
        }
        return sum - discount;
    }

    static String receipt(int[] prices) {
        return "total: " + total(prices, 0);
    }
}
