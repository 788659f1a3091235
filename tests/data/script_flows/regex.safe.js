const cp=require('child_process');
app.get('/', (req,res)=>{ const m = /a(b)/.exec(req.query.url);
res.json(m);
});
