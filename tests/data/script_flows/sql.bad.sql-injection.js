app.get('/', async (req, res) => { const id = req.query.id;
const r = await db.query(`SELECT * FROM t WHERE id = ${id}`);
res.json(r);
});
