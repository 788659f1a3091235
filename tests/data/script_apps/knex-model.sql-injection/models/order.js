const knex = require('../knex');

class Order {
  static async search({ status, from, limit }) {
    let sql = 'SELECT * FROM orders WHERE 1 = 1';
    if (status) sql += ` AND status = '${status}'`;
    if (from) sql += ' AND created_at > ?';
    return knex.raw(sql + ` LIMIT ${limit}`, from ? [from] : []);
  }
}

module.exports = Order;
