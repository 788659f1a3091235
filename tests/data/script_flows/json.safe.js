app.get('/', (req,res)=>{ res.send({q: req.query.q});
});
