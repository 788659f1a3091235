app.get('/', async (req,res)=>{ const r = await fetch(`https://api.example.com/${req.query.id}`);
});
