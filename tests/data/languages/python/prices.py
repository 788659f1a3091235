def total(prices, discount=0):
    return sum(prices) - discount


def receipt(prices):
    return f"total: {total(prices)}"
