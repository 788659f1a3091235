app.get('/', async (req, res) => { const id = Number(req.query.id);
const r = await db.query(`SELECT * FROM t WHERE id = ${id}`);
});
