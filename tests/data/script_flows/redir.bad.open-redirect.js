app.get('/', (req,res)=>{ res.redirect(req.query.next);
});
