const Order = require('../models/order');

module.exports.index = async (req, res) => {
  const { status, from } = req.query;
  const orders = await Order.search({ status, from, limit: 20 });
  res.render('orders', { orders });
};
