package app;

record Prices(int first, int second) {
    int total(boolean member) {
        if (member) {
            return (first + second) * 9 / 10;
        }
        return first + second;
    }

    static int unused() {
        return 1;
    }
}
