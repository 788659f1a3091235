router.get('/', async (ctx) => { ctx.body = await pool.query(`DELETE FROM x WHERE y='${ctx.request.body.y}'`);
});
