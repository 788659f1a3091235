function load(id){ return db.query('SELECT a FROM b WHERE c=' + id);
}
app.get('/', (req,res)=>{ load(req.params.id).then(r=>res.json(r));
});
