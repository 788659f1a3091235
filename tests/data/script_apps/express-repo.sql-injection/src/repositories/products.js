const pool = require('../db');

async function listSorted(sort, page) {
  const { rows } = await pool.query(`SELECT id, name, price FROM products ORDER BY ${sort} LIMIT 50 OFFSET $1`, [(page - 1) * 50]);
  return rows;
}

async function find(id) {
  const { rows } = await pool.query('SELECT * FROM products WHERE id = $1', [id]);
  return rows[0];
}

module.exports = { listSorted, find };
