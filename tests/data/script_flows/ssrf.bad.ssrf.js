app.get('/', async (req,res)=>{ const r = await fetch(req.query.url);
res.send('ok');
});
