app.get('/', (req,res)=>{ res.send(`<h1>${escapeHtml(req.query.q)}</h1>`);
});
