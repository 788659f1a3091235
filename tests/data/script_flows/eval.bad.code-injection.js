router.post('/x', (req, res) => { res.json(eval(req.body.expr));
});
