app.get('/', (req,res)=>{ if (!ALLOWED.has(req.query.next)) return;
res.redirect(req.query.next);
});
