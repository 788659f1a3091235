app.get('/', (req,res)=>{ res.redirect(`/user/${req.query.next}`);
});
